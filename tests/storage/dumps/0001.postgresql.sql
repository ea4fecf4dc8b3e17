SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.events (
    study integer NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    annotator text,
    judgment_id text,
    data text NOT NULL,
    digest text NOT NULL
);
CREATE TABLE public.steelyard_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.studies (
    id integer NOT NULL,
    name text NOT NULL,
    last_seq bigint NOT NULL,
    digest text NOT NULL,
    config_seq bigint NOT NULL
);
CREATE SEQUENCE public.studies_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.studies_id_seq OWNED BY public.studies.id;
CREATE TABLE public.tasks (
    study integer NOT NULL,
    judgment_id text NOT NULL,
    annotator text NOT NULL,
    stage integer NOT NULL,
    item_ids text NOT NULL,
    state text NOT NULL,
    lease_end bigint NOT NULL,
    picked_seq bigint NOT NULL,
    answer_seq bigint
);
ALTER TABLE ONLY public.studies ALTER COLUMN id SET DEFAULT nextval('public.studies_id_seq'::regclass);
INSERT INTO public.events VALUES (1, 1, 1794834333013342, 'items', NULL, NULL, '{"items":[{"id":"a","text":"apple"},{"id":"b","text":"bread"},{"id":"c","text":"cake"}]}', '53428e0421597f767da25af4bb6fc0ae');
INSERT INTO public.events VALUES (1, 2, 1794834333013342, 'config', NULL, NULL, '{"config":{"design":{"judgments":3},"items":"items.csv","model":{"name":"mean"},"name":"old","protocol":{"name":"direct"},"question":"How good?","title":"Old"},"items_digest":"6d1356864758789cdfe7082c229fc044","software":"0.1.0"}', '523a2e192035e492616c7cabe0b1d837');
INSERT INTO public.events VALUES (1, 3, 1794834333019818, 'picked', 'ann', '0defdd7d8fba4ac2b0d3a20b4c1894d1', '{"design":"redundant","items":["a"],"lease_end":1794836133019818,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"523a2e192035e492616c7cabe0b1d837","weight":1.0}', '86a4354bdf9b1b1a99a0fe2322c3020c');
INSERT INTO public.events VALUES (1, 4, 1794834333028788, 'judgment', 'ann', '0defdd7d8fba4ac2b0d3a20b4c1894d1', '{"answer":{"a":10},"items":["a"],"late":false,"seconds":null,"stage":0}', '161b727d55dc3003456d30232bc33180');
INSERT INTO public.events VALUES (1, 5, 1794834333031415, 'picked', 'ann', 'e70e4bba26064a04954f726b06706182', '{"design":"redundant","items":["c"],"lease_end":1794836133031415,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"161b727d55dc3003456d30232bc33180","weight":1.0}', '60a6e78f03568e3d235e2dcce02fb8ed');
INSERT INTO public.events VALUES (1, 6, 1794834333035734, 'judgment', 'ann', 'e70e4bba26064a04954f726b06706182', '{"answer":{"c":90},"items":["c"],"late":false,"seconds":null,"stage":0}', '678ec1c12d855c10fff282849aeda611');
INSERT INTO public.events VALUES (1, 7, 1794834333039502, 'picked', 'ann', '4fc14a4e68a949ca9295e08803e6512b', '{"design":"redundant","items":["b"],"lease_end":1794836133039502,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"678ec1c12d855c10fff282849aeda611","weight":1.0}', '274e162559d4c5b5351aa36d3cd58b10');
INSERT INTO public.events VALUES (1, 8, 1794834333042544, 'judgment', 'ann', '4fc14a4e68a949ca9295e08803e6512b', '{"answer":{"b":20},"items":["b"],"late":false,"seconds":null,"stage":0}', 'b26ef03dcbd310c3699b7ad6e1a39009');
INSERT INTO public.events VALUES (1, 9, 1794834333047702, 'picked', 'bob', '1c797d3f9043453db3aae8ecc608f0b6', '{"design":"redundant","items":["c"],"lease_end":1794836133047702,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"b26ef03dcbd310c3699b7ad6e1a39009","weight":1.0}', 'e9501bfd9e1944a927f2bc7afb45d883');
INSERT INTO public.events VALUES (1, 10, 1794834333059108, 'judgment', 'bob', '1c797d3f9043453db3aae8ecc608f0b6', '{"answer":{"c":80},"items":["c"],"late":false,"seconds":null,"stage":0}', 'd0f3af8e3a2e11e952489a6ddcddb6f5');
INSERT INTO public.events VALUES (1, 11, 1794834333061612, 'picked', 'bob', '0864e70f5a2c41078e57d5b12d804311', '{"design":"redundant","items":["a"],"lease_end":1794836133061612,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"d0f3af8e3a2e11e952489a6ddcddb6f5","weight":1.0}', 'a9d2485d5c7b226591a96bebffeef550');
INSERT INTO public.events VALUES (1, 12, 1794834333070774, 'judgment', 'bob', '0864e70f5a2c41078e57d5b12d804311', '{"answer":{"a":30},"items":["a"],"late":false,"seconds":null,"stage":0}', 'c7a500977f647773b48c0a62d961099b');
INSERT INTO public.events VALUES (1, 13, 1794834333075702, 'picked', 'bob', '153a4d18b4a54ebcb2cc59a394d92b34', '{"design":"redundant","items":["b"],"lease_end":1794836133075702,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"c7a500977f647773b48c0a62d961099b","weight":1.0}', '90b057b625ac6e6c717be909b8a75e10');
INSERT INTO public.events VALUES (1, 14, 1794834333080319, 'judgment', 'bob', '153a4d18b4a54ebcb2cc59a394d92b34', '{"answer":{"b":40},"items":["b"],"late":false,"seconds":null,"stage":0}', '10b9582162c113cb22b344c3ccfac5cd');
INSERT INTO public.events VALUES (1, 15, 1794834333082236, 'picked', 'cleo', 'c4ae31d489144149b81924545b834410', '{"design":"redundant","items":["a"],"lease_end":1794836133082236,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"10b9582162c113cb22b344c3ccfac5cd","weight":1.0}', 'bd2a550774880e39a41b8a866289448e');
INSERT INTO public.steelyard_version VALUES ('0001');
INSERT INTO public.studies VALUES (1, 'old', 15, 'bd2a550774880e39a41b8a866289448e', 2);
INSERT INTO public.tasks VALUES (1, '0defdd7d8fba4ac2b0d3a20b4c1894d1', 'ann', 0, '["a"]', 'answered', 1794836133019818, 3, 4);
INSERT INTO public.tasks VALUES (1, 'e70e4bba26064a04954f726b06706182', 'ann', 0, '["c"]', 'answered', 1794836133031415, 5, 6);
INSERT INTO public.tasks VALUES (1, '4fc14a4e68a949ca9295e08803e6512b', 'ann', 0, '["b"]', 'answered', 1794836133039502, 7, 8);
INSERT INTO public.tasks VALUES (1, '1c797d3f9043453db3aae8ecc608f0b6', 'bob', 0, '["c"]', 'answered', 1794836133047702, 9, 10);
INSERT INTO public.tasks VALUES (1, '0864e70f5a2c41078e57d5b12d804311', 'bob', 0, '["a"]', 'answered', 1794836133061612, 11, 12);
INSERT INTO public.tasks VALUES (1, '153a4d18b4a54ebcb2cc59a394d92b34', 'bob', 0, '["b"]', 'answered', 1794836133075702, 13, 14);
INSERT INTO public.tasks VALUES (1, 'c4ae31d489144149b81924545b834410', 'cleo', 0, '["a"]', 'open', 1794836133082236, 15, NULL);
SELECT pg_catalog.setval('public.studies_id_seq', 1, false);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (study, seq);
ALTER TABLE ONLY public.steelyard_version
    ADD CONSTRAINT steelyard_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT studies_name_key UNIQUE (name);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT studies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (study, judgment_id);
CREATE INDEX tasks_by_annotator ON public.tasks USING btree (study, annotator, state);
CREATE INDEX tasks_by_lease ON public.tasks USING btree (study, state, lease_end);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_study_fkey FOREIGN KEY (study) REFERENCES public.studies(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_study_fkey FOREIGN KEY (study) REFERENCES public.studies(id);
