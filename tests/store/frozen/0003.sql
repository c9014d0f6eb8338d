BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE claims (
	work VARCHAR(64) NOT NULL, 
	session_id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	expires_s DOUBLE NOT NULL, 
	CONSTRAINT pk_claims PRIMARY KEY (work), 
	CONSTRAINT fk_claims_session_id FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "claims" VALUES('aa',1,'someone',1.0);
CREATE TABLE configs (
	sha VARCHAR(64) NOT NULL, 
	config JSON NOT NULL, 
	CONSTRAINT pk_configs PRIMARY KEY (sha)
);
INSERT INTO "configs" VALUES('ab8eb814948cf8a7a0311edace82349046b350de00eddce3ea2135b82845b29e','{"BLOCK_N":16,"CACHE":".cg","FUSED":true,"SPLITS":0}');
CREATE TABLE evaluations (
	id INTEGER NOT NULL, 
	session_id INTEGER NOT NULL, 
	problem_sha VARCHAR(64) NOT NULL, 
	config_sha VARCHAR(64) NOT NULL, 
	stage VARCHAR(32) NOT NULL, 
	judge TEXT NOT NULL, 
	compiler TEXT NOT NULL, 
	source_sha TEXT NOT NULL, 
	status VARCHAR(32) NOT NULL, 
	value_us DOUBLE, 
	low_us DOUBLE, 
	high_us DOUBLE, 
	terms JSON NOT NULL, 
	limited_by TEXT NOT NULL, 
	code TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	samples_us JSON NOT NULL, 
	seconds DOUBLE NOT NULL, 
	environment JSON NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_evaluations PRIMARY KEY (id), 
	CONSTRAINT fk_evaluations_session_id FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT fk_evaluations_problem_sha FOREIGN KEY(problem_sha) REFERENCES problems (sha), 
	CONSTRAINT fk_evaluations_config_sha FOREIGN KEY(config_sha) REFERENCES configs (sha), 
	CONSTRAINT uq_evaluations_identity UNIQUE (problem_sha, config_sha, stage, judge, compiler, source_sha)
);
INSERT INTO "evaluations" VALUES(1,1,'eb360ebd38b5b9db769373ab1f09ca6aa02a5cca5ee17e5ceb22593f1d22db7d','ab8eb814948cf8a7a0311edace82349046b350de00eddce3ea2135b82845b29e','predicted','predict-amd-1','triton-3.9.0','','ok',12.5,10.0,15.625,'{"memory":8.75,"launch":1.5}','memory','','','[]',0.25,'{}','2026-11-30T20:35:12.230312+00:00');
CREATE TABLE kernel_facts (
	"key" VARCHAR(128) NOT NULL, 
	kernel TEXT NOT NULL, 
	arch TEXT NOT NULL, 
	compiler TEXT NOT NULL, 
	code_sha TEXT NOT NULL, 
	facts JSON NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_kernel_facts PRIMARY KEY ("key")
);
INSERT INTO "kernel_facts" VALUES('key-0','sparse_decode_kernel','gfx942','triton-3.9.0','0000000000000000000000000000000000000000000000000000000000000000','{"kernel":"sparse_decode_kernel","arch":"gfx942","num_warps":4,"registers":100,"accumulation_registers":16,"scalar_registers":40,"vector_spills":0,"scalar_spills":0,"scratch_bytes":0,"shared_bytes":16384,"workgroups_per_cu":2,"waves_per_simd":2.0,"occupancy_limit":"registers","instructions":400,"mix":{"matrix":8,"load":4,"other":388},"matrix_instructions":{"v_mfma_f32_16x16x16_bf16":8},"matrix_cycles":64,"load_widths":{"16":4},"loops":[{"label":"LBB0_1","depth":1,"instructions":90,"mix":{"matrix":8,"load":4},"matrix_cycles":64,"load_bytes_per_lane":64,"load_widths":{"16":4},"shared_read_bytes_per_lane":32,"shared_write_bytes_per_lane":32,"waits":3,"barriers":1,"branches":1}],"code_bytes":4096,"compile_seconds":0.25,"compiler":"triton-3.9.0","code_sha":"0000000000000000000000000000000000000000000000000000000000000000","extra":{"waitcnt":[1,2]}}','2026-11-30T20:35:11.952284+00:00');
CREATE TABLE kernel_traces (
	name VARCHAR(160) NOT NULL, 
	traces BLOB NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_kernel_traces PRIMARY KEY (name)
);
INSERT INTO "kernel_traces" VALUES('trace-0',X'FD377A585A000004E6D6B4460200210116000000742FE5A30100277B22666F726D6174223A312C227365636F6E6473223A302E32352C2273616D706C6573223A5B5D7D0095E86A119D9725A900014028D4524AE51FB6F37D010000000004595A','2026-11-30T20:35:12.084348+00:00');
CREATE TABLE launches (
	evaluation_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	facts_key VARCHAR(128) NOT NULL, 
	CONSTRAINT pk_launches PRIMARY KEY (evaluation_id, position), 
	CONSTRAINT fk_launches_evaluation_id FOREIGN KEY(evaluation_id) REFERENCES evaluations (id), 
	CONSTRAINT fk_launches_facts_key FOREIGN KEY(facts_key) REFERENCES kernel_facts ("key")
);
INSERT INTO "launches" VALUES(1,0,'key-0');
INSERT INTO "launches" VALUES(1,1,'key-0');
CREATE TABLE problems (
	sha VARCHAR(64) NOT NULL, 
	signature VARCHAR(64) NOT NULL, 
	op TEXT NOT NULL, 
	arch TEXT NOT NULL, 
	problem JSON NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_problems PRIMARY KEY (sha)
);
INSERT INTO "problems" VALUES('eb360ebd38b5b9db769373ab1f09ca6aa02a5cca5ee17e5ceb22593f1d22db7d','4902b300c6259c7b3182e399b10a0b76688e753ccf5d0b167ad9b4d34b4f0d79','sparse_decode','gfx942','{"op":"sparse_decode","arch":"gfx942","compute_units":304,"q_dtype":"bf16","kv_dtype":"bf16","kv_scale":"none","group_size":16,"kv_heads":1,"head_dim":128,"page_size":128,"topk":16,"query_len":1,"rows":1,"context":8192}','2026-11-30T20:35:12.181829+00:00');
CREATE TABLE session_problems (
	session_id INTEGER NOT NULL, 
	problem_sha VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_session_problems PRIMARY KEY (session_id, problem_sha), 
	CONSTRAINT fk_session_problems_session_id FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT fk_session_problems_problem_sha FOREIGN KEY(problem_sha) REFERENCES problems (sha)
);
INSERT INTO "session_problems" VALUES(1,'eb360ebd38b5b9db769373ab1f09ca6aa02a5cca5ee17e5ceb22593f1d22db7d');
CREATE TABLE sessions (
	id INTEGER NOT NULL, 
	arguments JSON NOT NULL, 
	arguments_sha VARCHAR(64) NOT NULL, 
	state TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	ended_at VARCHAR(32), 
	CONSTRAINT pk_sessions PRIMARY KEY (id)
);
INSERT INTO "sessions" VALUES(1,'{"budget":"200"}','f9a79c588a4ee3545ab8b817dc8c6e7d2644234c7af3def62236fadd19a7b769','budget',1.61839177999354433268e-01,'2026-11-30T20:35:12.118638+00:00','2026-11-30T20:35:12.391908+00:00');
CREATE TABLE verifications (
	id INTEGER NOT NULL, 
	signature VARCHAR(64) NOT NULL, 
	config_sha VARCHAR(64) NOT NULL, 
	source_sha TEXT NOT NULL, 
	ran_on VARCHAR(32) NOT NULL, 
	status VARCHAR(32) NOT NULL, 
	cases JSON NOT NULL, 
	seconds DOUBLE NOT NULL, 
	reason TEXT NOT NULL, 
	environment JSON NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_verifications PRIMARY KEY (id), 
	CONSTRAINT fk_verifications_config_sha FOREIGN KEY(config_sha) REFERENCES configs (sha), 
	CONSTRAINT uq_verifications_identity UNIQUE (signature, config_sha, source_sha, ran_on)
);
INSERT INTO "verifications" VALUES(1,'4902b300c6259c7b3182e399b10a0b76688e753ccf5d0b167ad9b4d34b4f0d79','ab8eb814948cf8a7a0311edace82349046b350de00eddce3ea2135b82845b29e','source-1','interpreter','ok','[{"name":"padding","grid":"(4, 1, 1)","status":"ok","row_rms":0.001,"mean_abs":0.0001,"max_abs":0.5,"past_rounding":null,"reason":""}]',0.0,'','{}','2026-11-30T20:35:12.343791+00:00');
CREATE INDEX ix_problems_arch_op ON problems (arch, op);
CREATE INDEX ix_sessions_arguments_sha ON sessions (arguments_sha);
CREATE INDEX ix_launches_facts_key ON launches (facts_key);
CREATE INDEX ix_claims_session_id ON claims (session_id);
COMMIT;
