PRAGMA application_id = 360161;
BEGIN TRANSACTION;
CREATE TABLE access (
	study INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	annotator TEXT, 
	note TEXT NOT NULL, 
	created BIGINT NOT NULL, 
	expires BIGINT, 
	PRIMARY KEY (study, digest), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
INSERT INTO "access" VALUES(1,'91ee2e69417245a3522d48ef72e3b6e3f20ef32f274576687e0a47bdf5a6a66d','invite','ann','',1795008490736284,NULL);
CREATE TABLE erasures (
	study INTEGER NOT NULL, 
	annotator TEXT NOT NULL, 
	stand_in TEXT NOT NULL, 
	first BIGINT NOT NULL, 
	events INTEGER NOT NULL, 
	judgments INTEGER NOT NULL, 
	replaced TEXT NOT NULL, 
	"before" TEXT NOT NULL, 
	member TEXT NOT NULL, 
	is_replaced BOOLEAN NOT NULL, 
	process TEXT NOT NULL, 
	touched BIGINT NOT NULL, 
	PRIMARY KEY (study), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
CREATE TABLE events (
	study INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	annotator TEXT, 
	judgment_id TEXT, 
	data TEXT NOT NULL, 
	digest TEXT NOT NULL, seal TEXT, 
	PRIMARY KEY (study, seq), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
INSERT INTO "events" VALUES(1,1,1795008490608038,'items',NULL,NULL,'{"items":[{"id":"a","text":"apple"},{"id":"b","text":"bread"},{"id":"c","text":"cake"}]}','ad28e8ae11d7cbc44ed6b5e0d6d3ceb6','e8ca56dab9a397381198cfc04057994a');
INSERT INTO "events" VALUES(1,2,1795008490608038,'config',NULL,NULL,'{"config":{"design":{"judgments":3},"items":"items.csv","model":{"name":"mean"},"name":"old","protocol":{"name":"direct"},"question":"How good?","title":"Old"},"items_digest":"6d1356864758789cdfe7082c229fc044","software":"0.1.0"}','fe394d96528a2b1ba3956393e6c789ba','917163df2ade7af0cd56f3ff2a4320a7');
INSERT INTO "events" VALUES(1,3,1795008490623289,'picked','ann','f6b62a3910544cb1bd5c5fe4d36869a6','{"design":"per_item","items":["a"],"lease_end":1795010290623289,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"fe394d96528a2b1ba3956393e6c789ba","weight":1.0}','7492c1f1c092d34500f6e3fefe5eb086','e8beda8593c740adada7013a18b302fb');
INSERT INTO "events" VALUES(1,4,1795008490640296,'judgment','ann','f6b62a3910544cb1bd5c5fe4d36869a6','{"answer":{"a":10},"items":["a"],"stage":0}','b49d80f74a584322f2fbdba8bb3aa5bc','6eafe1a39a819edea448885e861011c0');
INSERT INTO "events" VALUES(1,5,1795008490643207,'picked','ann','ce55d676fcb345cc9571502100c98702','{"design":"per_item","items":["c"],"lease_end":1795010290643207,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"b49d80f74a584322f2fbdba8bb3aa5bc","weight":1.0}','7ad7a02868b4a26d30777d6f8664c357','d668fe420acac08ddf4d1f3a43d46f4c');
INSERT INTO "events" VALUES(1,6,1795008490649290,'judgment','ann','ce55d676fcb345cc9571502100c98702','{"answer":{"c":90},"items":["c"],"stage":0}','91a38ce814b4960c3c4e544dfc6f3379','cc27d9eb05ead04037657d25766824fa');
INSERT INTO "events" VALUES(1,7,1795008490651305,'picked','ann','97fee95274e741c9bca15d86f8fc8cf5','{"design":"per_item","items":["b"],"lease_end":1795010290651305,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"91a38ce814b4960c3c4e544dfc6f3379","weight":1.0}','a7ceee9e9272681b22feaac23a0cb79c','a19f9a9123719b3e7416e5137263a8d4');
INSERT INTO "events" VALUES(1,8,1795008490655416,'judgment','ann','97fee95274e741c9bca15d86f8fc8cf5','{"answer":{"b":20},"items":["b"],"stage":0}','c894fe197802923c1d5193c06687d20f','1d374d45799a3d52932961861338d2b3');
INSERT INTO "events" VALUES(1,9,1795008490656166,'picked','bob','381686f6d2754406aad564bc0988d881','{"design":"per_item","items":["c"],"lease_end":1795010290656166,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"c894fe197802923c1d5193c06687d20f","weight":1.0}','a018c6b82c73f5c0b2df3dd81c1f4bd1','5e8e5956272168a043edf6d7b5287d14');
INSERT INTO "events" VALUES(1,10,1795008490679854,'judgment','bob','381686f6d2754406aad564bc0988d881','{"answer":{"c":80},"items":["c"],"stage":0}','ae74e1e8e6aaf1bdf24783c7ae42d3ca','15baee9adb3c8f4b3c3f34d59b2f9416');
INSERT INTO "events" VALUES(1,11,1795008490691460,'picked','bob','94fff9a4ff504b0f975996e992fa11cd','{"design":"per_item","items":["a"],"lease_end":1795010290691460,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"ae74e1e8e6aaf1bdf24783c7ae42d3ca","weight":1.0}','f0f6e5e6ff859a68092a6f80f6269a42','c2ff58b2f68093665fe4d57841f8effe');
INSERT INTO "events" VALUES(1,12,1795008490700113,'judgment','bob','94fff9a4ff504b0f975996e992fa11cd','{"answer":{"a":30},"items":["a"],"stage":0}','454db0ddad4c118c3f746cee01d02ac8','4d5250db27eb2163f1c72df56fee4063');
INSERT INTO "events" VALUES(1,13,1795008490706225,'picked','bob','ecda645842984586bfb209cfaeb98c37','{"design":"per_item","items":["b"],"lease_end":1795010290706225,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"454db0ddad4c118c3f746cee01d02ac8","weight":1.0}','668a67729954d21b8c3e393848b1ced4','34d930204d7b015b61c5d97b017d5e74');
INSERT INTO "events" VALUES(1,14,1795008490715425,'judgment','bob','ecda645842984586bfb209cfaeb98c37','{"answer":{"b":40},"items":["b"],"stage":0}','6472978022b3cf39637185d39c1acdb7','384bc59a2457abad5da95eb98b288471');
INSERT INTO "events" VALUES(1,15,1795008490733878,'picked','cleo','c8f744d8fc5b49fb92b7314d3a835e14','{"design":"per_item","items":["a"],"lease_end":1795010290733878,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"6472978022b3cf39637185d39c1acdb7","weight":1.0}','1c8bc8177b274854e548836cc1a690cb','0558e5d8a348f62ebf00d367674ccf26');
CREATE TABLE imported (
	study INTEGER NOT NULL, 
	batch TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	judgment_id TEXT NOT NULL, 
	annotator TEXT, 
	data TEXT NOT NULL, 
	PRIMARY KEY (study, batch, place), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
CREATE TABLE imports (
	study INTEGER NOT NULL, 
	batch TEXT NOT NULL, 
	process TEXT NOT NULL, 
	touched BIGINT NOT NULL, 
	is_complete BOOLEAN NOT NULL, 
	PRIMARY KEY (study, batch), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
CREATE TABLE steelyard_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT steelyard_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "steelyard_version" VALUES('0004');
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	digest TEXT NOT NULL, 
	config_seq BIGINT NOT NULL, secret TEXT DEFAULT '' NOT NULL, rewritten_seq BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'old',15,'1c8bc8177b274854e548836cc1a690cb',2,'4e360df0ad7f893d3a243e0eb549d782aa13a32d645915d476de419795008eac',0);
CREATE TABLE tasks (
	study INTEGER NOT NULL, 
	judgment_id TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	stage INTEGER NOT NULL, 
	item_ids TEXT NOT NULL, 
	state TEXT NOT NULL, 
	lease_end BIGINT NOT NULL, 
	picked_seq BIGINT NOT NULL, 
	answer_seq BIGINT, 
	PRIMARY KEY (study, judgment_id), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
INSERT INTO "tasks" VALUES(1,'f6b62a3910544cb1bd5c5fe4d36869a6','ann',0,'["a"]','answered',1795010290623289,3,4);
INSERT INTO "tasks" VALUES(1,'ce55d676fcb345cc9571502100c98702','ann',0,'["c"]','answered',1795010290643207,5,6);
INSERT INTO "tasks" VALUES(1,'97fee95274e741c9bca15d86f8fc8cf5','ann',0,'["b"]','answered',1795010290651305,7,8);
INSERT INTO "tasks" VALUES(1,'381686f6d2754406aad564bc0988d881','bob',0,'["c"]','answered',1795010290656166,9,10);
INSERT INTO "tasks" VALUES(1,'94fff9a4ff504b0f975996e992fa11cd','bob',0,'["a"]','answered',1795010290691460,11,12);
INSERT INTO "tasks" VALUES(1,'ecda645842984586bfb209cfaeb98c37','bob',0,'["b"]','answered',1795010290706225,13,14);
INSERT INTO "tasks" VALUES(1,'c8f744d8fc5b49fb92b7314d3a835e14','cleo',0,'["a"]','open',1795010290733878,15,NULL);
CREATE INDEX tasks_by_lease ON tasks (study, state, lease_end);
CREATE INDEX tasks_by_annotator ON tasks (study, annotator, state);
CREATE INDEX access_by_kind ON access (study, kind, annotator);
COMMIT;
