# `make tables` makes the tables and modules that ship, from nothing or from a store of earlier runs: what is in the
# store is not done again, so a run that was stopped goes on. `make tables/gfx942` does one architecture.
# docs/tables.md says what a release costs. Recipes are short on purpose: they are commands to give by hand, too.

M3GEN ?= m3gen
ARCHS ?= gfx942 gfx950 sm_90 sm_100
OPS ?= all
ROWS ?= 1,16,64,256,512
CONTEXTS ?= 8192,131072
JOBS ?= 1
OUT ?= .
STORE ?= sqlite:///$(abspath $(OUT))/release.db

# TP 4 is searched the longest; the other shards begin with what it found.
FIRST_TP ?= 4
FIRST_BUDGET ?= 40
OTHER_TP ?= 1,2,8
OTHER_BUDGET ?= 12

TUNE = $(M3GEN) tune --op $(OPS) --rows $(ROWS) --context $(CONTEXTS) --jobs $(JOBS) --store $(STORE) --no-export

.PHONY: tables lint $(ARCHS:%=tables/%)

tables: $(ARCHS:%=tables/%) lint

$(ARCHS:%=tables/%): tables/%:
	$(TUNE) --arch $* --tp $(FIRST_TP) --budget $(FIRST_BUDGET)
	$(TUNE) --arch $* --tp $(OTHER_TP) --budget $(OTHER_BUDGET)
	$(M3GEN) tables export --arch $* --store $(STORE) --out $(OUT)/tuning_db
	$(M3GEN) generate --arch $* --tables $(OUT)/tuning_db --out $(OUT)/generated

lint:
	$(M3GEN) tables lint --tables $(OUT)/tuning_db
