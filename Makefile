# Everything a person does with this clone. `make help` lists the commands; README.md explains the settings.

# The system's own Python was compiled with profile-guided optimization, which one that pyenv compiled mostly was not: the
# same calls take about a tenth less of the processor.
PYTHON ?= $(or $(shell for python in /usr/bin/python3.11 python3.11; do \
	$$python -c 'import ensurepip, venv' 2>/dev/null && { echo $$python; break; }; done),python3.11)
override SLUICE_HOME := $(or $(SLUICE_HOME),$(CURDIR)/.sluice)
ifneq ($(words $(CURDIR) $(SLUICE_HOME)),2)
$(error make knows no path with a space in it; the clone is $(CURDIR), the state folder is $(SLUICE_HOME))
endif
override SLUICE_HOME := $(abspath $(SLUICE_HOME))
export SLUICE_HOME

# Not by way of the link: what runs stays in the environment it began in when `make setup` puts another one in place.
BIN = $(or $(realpath $(SLUICE_HOME)/venv),$(SLUICE_HOME)/venv)/bin
LOCAL = $(BIN)/python -m sluice_local
# The first Python that runs and is new enough: these commands need no environment.
define BARE
	@for python in $(BIN)/python $(PYTHON) python3; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			PYTHONPATH=deploy/local PYTHONDONTWRITEBYTECODE=1 exec $$python -m sluice_local $(1); \
		fi; \
	done; \
	echo "Python is missing: no python3.11 runs; name one: make PYTHON=..." >&2; exit 1
endef
# Where the embedded system keeps what Spark writes and needs; a variable that is set already is left as it is.
SECURED = $(filter 1 true yes on,$(SECURE))
DATA = $(SLUICE_HOME)/$(if $(SECURED),secured-data,data)
SPARK = $(if $(SECURED),SLUICE_KAFKA_CONF=$${SLUICE_KAFKA_CONF:-$(SLUICE_HOME)/security/kafka.json}) \
	SLUICE_KAFKA_BOOTSTRAP=$${SLUICE_KAFKA_BOOTSTRAP:-127.0.0.1:$${SLUICE_KAFKA_PORT:-9092}} \
	SLUICE_SPARK_HISTORY=$${SLUICE_SPARK_HISTORY:-$(DATA)/retention-spark/history} \
	SLUICE_SPARK_JARS=$${SLUICE_SPARK_JARS:-$${SLUICE_JARS:-$(SLUICE_HOME)/jars}/spark} \
	SLUICE_SPARK_LOCAL=$${SLUICE_SPARK_LOCAL:-$(SLUICE_HOME)/run/what-if}
CODE := shared services cli dev deploy/local deploy/images deploy/k8s deploy/release examples/at_least_once examples/distributed_ingest examples/testing tests bench

.DEFAULT_GOAL := help
.PHONY: help setup run up down status decisions what-if questions check generate test contract contract-images soak lint format bench growth chaos fuzz docs golden images k8s-render k8s-check k8s-up k8s-down k8s-test page-check page-vendor release reference lock clean

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: ## environment, locked packages and jars; only what has changed
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: there is no $(PYTHON) on the path; install Python 3.11 or name another one: make PYTHON=..." >&2; exit 1; }
	@PYTHONPATH=deploy/local PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m sluice_local.setup

# The segment stores of a system to try report load after two minutes, and an idle segment after two and a half, not after
# ten and twenty: so a stream is seen to scale. A variable that is set already is left as it is.
run up: export SLUICE_SEGMENT_STORE_OPTIONS ?= {"autoScale.cooldown.time.seconds": 60, "autoScale.mute.time.seconds": 60, \
	"autoScale.cache.expiry.seconds": 150, "autoScale.cache.cleanUp.interval.seconds": 10}

run: setup ## the whole system in the foreground; Ctrl-C stops it; SECURE=1: with TLS, passwords and permissions
	@exec $(LOCAL) run --with-parent

up: setup ## the whole system in the background; returns when it is ready
	@$(LOCAL) up

down: ## stop what `make up` started; ONLY=services: those alone, Kafka and the data plane go on
	$(call BARE,down $(if $(ONLY),--only $(ONLY)))

status: ## every part with its process, address, readiness and log
	$(call BARE,status)

decisions: setup ## the last decisions on scaling and retention of a stream: STREAM=scope/name, COUNT=20
	@$(SPARK) $(BIN)/python -m retention_spark.decisions $(STREAM) $(COUNT)

what-if: setup ## what another policy would have done: STREAM=scope/name and RETENTION=size=1MiB..1GiB or SCALING=min=2,factor=4
	@$(SPARK) $(BIN)/python -m retention_spark.what_if $(STREAM) $(RETENTION)$(SCALING) $(HOURS)

questions: setup ## most scaled streams, transactions by day, longest workflows, of the whole archive in SLUICE_ARCHIVE; COUNT=10
	@$(SPARK) $(BIN)/python -m retention_spark.questions $(COUNT)

check: setup ## a change while it is made, in three minutes: lint, tests of the core and of what differs from main, some seeds
	@$(BIN)/python .ci/check

generate: docs golden k8s-render ## write all that is generated anew: interface, documents, golden journals, manifests

test: setup ## all tests, in PROCESSES=3 processes; CONTAINERS=yes: those of `make contract`, too
	@$(BIN)/python -m pytest -n $(or $(PROCESSES),3) --no-loadscope-reorder \
		$(if $(CONTAINERS),tests tests/containers shared/client/tests shared/coordination/tests)

contract-images: setup
	@PYTHONPATH=tests $(BIN)/python -m containers.build

contract: contract-images ## each service alone in a container; needs a container engine, builds the images that are missing
	@$(BIN)/python -m pytest tests/containers

soak: setup ## simulated faults of transactions and scopes, seed after seed; SOAK_WORLD, SOAK_SEEDS=10000, SOAK_SECONDS, SOAK_FROM
	@PYTHONPATH=tests $(BIN)/python -m simulation.soak

lint: setup ## style, types, layers and words, of the page, too
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m mypy $(wildcard $(CODE))
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python .ci/identifiers
	@$(BIN)/python .ci/page check

format: setup ## rewrite the code in the agreed style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python .ci/page format

bench: setup ## measure against Pravega's own controller; BENCH="--help" shows the options
	@PYTHONPATH=tests $(BIN)/python -m bench.run $(BENCH)

growth: setup ## what 1,000 to 1,000,000 streams take: memory, start, calls; GROWTH="--streams 1000 10000"
	@PYTHONPATH=tests $(BIN)/python -m bench.growth $(GROWTH)

docs: setup ## write the Python of shared/proto, docs/asyncapi.yaml, docs/schemas, docs/permissions.md, tables of docs/topics.md
	@$(BIN)/python shared/generate.py
	@$(BIN)/python -m sluice.catalog docs
	@$(BIN)/python -m api_gateway.permissions_page docs

chaos: setup ## a system of three brokers under load and faults for MINUTES=30, from SEED; what each did to calls
	@PYTHONPATH=tests $(BIN)/python -m bench.chaos --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(CHAOS)

fuzz: setup ## a gateway is sent what no client sends, without credentials, for MINUTES=10 while a client reads
	@PYTHONPATH=tests $(BIN)/python -m bench.fuzz --minutes $(or $(MINUTES),10)

golden: setup ## record the golden journals of the version that is being made
	@PYTHONPATH=tests $(BIN)/python -m golden $(GOLDEN)

images: setup ## container images of all services; IMAGES_BASE=host where there is no registry, PLATFORMS=linux/arm64
	@deploy/images/build

k8s-render: setup ## render the Kubernetes manifests into deploy/k8s/rendered, after a change
	@PYTHONPATH=deploy/k8s $(BIN)/python -m sluice_k8s render

k8s-check: setup ## check the manifests, at last on a real API server; builds it the first time
	@PYTHONPATH=deploy/k8s $(BIN)/python -m sluice_k8s check
	@$(BIN)/python -m pytest tests/kubernetes/custom_resources.py

k8s-up: setup ## a Kubernetes node of this machine with the dev overlay; builds it the first time; takes root
	@PYTHONPATH=deploy/k8s $(BIN)/python -m sluice_k8s up

k8s-down: setup ## end that node and delete what it kept
	@PYTHONPATH=deploy/k8s $(BIN)/python -m sluice_k8s down

k8s-test: setup ## what a client notices while that node's pods are scaled, rolled, killed, drained; STEPS="kubelet drain"
	@PYTHONPATH=tests $(SLUICE_HOME)/k8s/node/enter $(BIN)/python -m bench.kubernetes $(STEPS)

page-check: setup ## style, types and units of the page's modules; fetches Node the first time, which nothing else needs
	@$(BIN)/python .ci/page check

page-vendor: setup ## write the page's libraries anew, in the versions that .ci/page/package.json names
	@$(BIN)/python .ci/page vendor

release: setup ## all that is released, of the last commit, tried as a stranger would, into dist
	@PYTHONPATH=deploy/release:deploy/images $(BIN)/python -m sluice_release make

reference: setup ## pages on the interfaces of the libraries for users, into dist/reference
	@PYTHONPATH=deploy/release:deploy/images $(BIN)/python -m sluice_release reference

LOCKED = $(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: setup ## write requirements.lock anew from requirements.in, and the lock of what only a release needs
	@$(LOCKED) --output-file requirements.lock requirements.in
	@$(LOCKED) --constraint requirements.lock --output-file deploy/release/tools.lock deploy/release/tools.in
	@if grep -nE '://|^-|file:' requirements.lock deploy/release/tools.lock; then echo "a lock names an address: see above" >&2; exit 1; fi

clean: ## remove the state folder, data included; refused while the system is up
	$(call BARE,clean)
