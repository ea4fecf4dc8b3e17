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
CREATE TABLE public.access (
    study integer NOT NULL,
    digest text NOT NULL,
    kind text NOT NULL,
    annotator text,
    note text NOT NULL,
    created bigint NOT NULL,
    expires bigint
);
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
    config_seq bigint NOT NULL,
    secret text DEFAULT ''::text NOT NULL
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
INSERT INTO public.access VALUES (1, '91ee2e69417245a3522d48ef72e3b6e3f20ef32f274576687e0a47bdf5a6a66d', 'invite', 'ann', '', 1794835988889533, NULL);
INSERT INTO public.events VALUES (1, 1, 1794835988652251, 'items', NULL, NULL, '{"items":[{"id":"a","text":"apple"},{"id":"b","text":"bread"},{"id":"c","text":"cake"}]}', '30ff8527bdfe89185d853b11879d0880');
INSERT INTO public.events VALUES (1, 2, 1794835988652251, 'config', NULL, NULL, '{"config":{"design":{"judgments":3},"items":"items.csv","model":{"name":"mean"},"name":"old","protocol":{"name":"direct"},"question":"How good?","title":"Old"},"items_digest":"6d1356864758789cdfe7082c229fc044","software":"0.1.0"}', 'eddd400b1f45da696f13b73395b45f7e');
INSERT INTO public.events VALUES (1, 3, 1794835988691620, 'picked', 'ann', 'ab1fa07aaa664a0483f5f77e3cc027b1', '{"design":"redundant","items":["a"],"lease_end":1794837788691620,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"eddd400b1f45da696f13b73395b45f7e","weight":1.0}', '2bd912676e0699b71bdaf533860cc3a2');
INSERT INTO public.events VALUES (1, 4, 1794835988718877, 'judgment', 'ann', 'ab1fa07aaa664a0483f5f77e3cc027b1', '{"answer":{"a":10},"items":["a"],"late":false,"seconds":null,"stage":0}', '712f1d7520739853f3291086bb48804b');
INSERT INTO public.events VALUES (1, 5, 1794835988744850, 'picked', 'ann', '8b48619c8afd427a8a8d3f4e91a3a7e9', '{"design":"redundant","items":["c"],"lease_end":1794837788744850,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"712f1d7520739853f3291086bb48804b","weight":1.0}', 'ccda24357426c21ef23c390173a3b5ad');
INSERT INTO public.events VALUES (1, 6, 1794835988767187, 'judgment', 'ann', '8b48619c8afd427a8a8d3f4e91a3a7e9', '{"answer":{"c":90},"items":["c"],"late":false,"seconds":null,"stage":0}', '865c0f50c6c1edc74e201e7b35b984e9');
INSERT INTO public.events VALUES (1, 7, 1794835988774032, 'picked', 'ann', 'ac80cbc5a18040129e2135d1d7065aed', '{"design":"redundant","items":["b"],"lease_end":1794837788774032,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"865c0f50c6c1edc74e201e7b35b984e9","weight":1.0}', 'a2532ff46b1471b88e7be5d6619e1f72');
INSERT INTO public.events VALUES (1, 8, 1794835988795607, 'judgment', 'ann', 'ac80cbc5a18040129e2135d1d7065aed', '{"answer":{"b":20},"items":["b"],"late":false,"seconds":null,"stage":0}', '0addae6adbcdc3372b35ae65bb9a3e3a');
INSERT INTO public.events VALUES (1, 9, 1794835988800463, 'picked', 'bob', 'd5a20c99ce894420b69e44901a43f154', '{"design":"redundant","items":["c"],"lease_end":1794837788800463,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"0addae6adbcdc3372b35ae65bb9a3e3a","weight":1.0}', 'e047c8067088a0fc522b79658f3626e8');
INSERT INTO public.events VALUES (1, 10, 1794835988815357, 'judgment', 'bob', 'd5a20c99ce894420b69e44901a43f154', '{"answer":{"c":80},"items":["c"],"late":false,"seconds":null,"stage":0}', '28206ece56fe23a7698aa7d4704f1e4c');
INSERT INTO public.events VALUES (1, 11, 1794835988821172, 'picked', 'bob', '359904f26aa04844bd64588cf1e6c768', '{"design":"redundant","items":["a"],"lease_end":1794837788821172,"propensity":0.5,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"28206ece56fe23a7698aa7d4704f1e4c","weight":1.0}', '516e171dcc0e57d58137f7a09e25e7b3');
INSERT INTO public.events VALUES (1, 12, 1794835988826270, 'judgment', 'bob', '359904f26aa04844bd64588cf1e6c768', '{"answer":{"a":30},"items":["a"],"late":false,"seconds":null,"stage":0}', '5544303c78c1ffad309efc60fc9f32be');
INSERT INTO public.events VALUES (1, 13, 1794835988838359, 'picked', 'bob', 'c875bd1350134e40bcf96ccc21bfd21f', '{"design":"redundant","items":["b"],"lease_end":1794837788838359,"propensity":1.0,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"5544303c78c1ffad309efc60fc9f32be","weight":1.0}', '120d27b143332925450e0e64f54bbfde');
INSERT INTO public.events VALUES (1, 14, 1794835988853235, 'judgment', 'bob', 'c875bd1350134e40bcf96ccc21bfd21f', '{"answer":{"b":40},"items":["b"],"late":false,"seconds":null,"stage":0}', '6b162c7b2f140d9312116563d9409a96');
INSERT INTO public.events VALUES (1, 15, 1794835988883590, 'picked', 'cleo', '4ce02ad9009541d0a1479d9230fd696b', '{"design":"redundant","items":["a"],"lease_end":1794837788883590,"propensity":0.3333333333333333,"round":0,"seed":0,"settings":{"judgments":3},"slot":null,"stage":0,"state":"6b162c7b2f140d9312116563d9409a96","weight":1.0}', 'de85383a193243f86e4dcf05b80fcc73');
INSERT INTO public.steelyard_version VALUES ('0003');
INSERT INTO public.studies VALUES (1, 'old', 15, 'de85383a193243f86e4dcf05b80fcc73', 2, '9dbac8f2c243bf2a26555bf0234e83630835962aec30cede8c1ed8c343f81840');
INSERT INTO public.tasks VALUES (1, 'ab1fa07aaa664a0483f5f77e3cc027b1', 'ann', 0, '["a"]', 'answered', 1794837788691620, 3, 4);
INSERT INTO public.tasks VALUES (1, '8b48619c8afd427a8a8d3f4e91a3a7e9', 'ann', 0, '["c"]', 'answered', 1794837788744850, 5, 6);
INSERT INTO public.tasks VALUES (1, 'ac80cbc5a18040129e2135d1d7065aed', 'ann', 0, '["b"]', 'answered', 1794837788774032, 7, 8);
INSERT INTO public.tasks VALUES (1, 'd5a20c99ce894420b69e44901a43f154', 'bob', 0, '["c"]', 'answered', 1794837788800463, 9, 10);
INSERT INTO public.tasks VALUES (1, '359904f26aa04844bd64588cf1e6c768', 'bob', 0, '["a"]', 'answered', 1794837788821172, 11, 12);
INSERT INTO public.tasks VALUES (1, 'c875bd1350134e40bcf96ccc21bfd21f', 'bob', 0, '["b"]', 'answered', 1794837788838359, 13, 14);
INSERT INTO public.tasks VALUES (1, '4ce02ad9009541d0a1479d9230fd696b', 'cleo', 0, '["a"]', 'open', 1794837788883590, 15, NULL);
SELECT pg_catalog.setval('public.studies_id_seq', 1, false);
ALTER TABLE ONLY public.access
    ADD CONSTRAINT access_pkey PRIMARY KEY (study, digest);
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
CREATE INDEX access_by_kind ON public.access USING btree (study, kind, annotator);
CREATE INDEX tasks_by_annotator ON public.tasks USING btree (study, annotator, state);
CREATE INDEX tasks_by_lease ON public.tasks USING btree (study, state, lease_end);
ALTER TABLE ONLY public.access
    ADD CONSTRAINT access_study_fkey FOREIGN KEY (study) REFERENCES public.studies(id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_study_fkey FOREIGN KEY (study) REFERENCES public.studies(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_study_fkey FOREIGN KEY (study) REFERENCES public.studies(id);
