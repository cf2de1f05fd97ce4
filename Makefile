# The front door. `make` alone lists what there is.

# Behind the user's own PATH: rustup's folder, and the one where Debian keeps nginx.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# How many times `make kills` kills.
KILLS ?= 200
# The same of `make kube-kills`.
KUBE_KILLS ?= 50
# Where `make install` puts weir: below $(DESTDIR), which packagers set.
PREFIX ?= /usr/local
DESTDIR ?=
STATIC := $(shell uname -m)-unknown-linux-gnu
# Packed relocations are a hundredth of the others (glibc 2.36: before that the program does not start, and `make static` says so).
STATIC_FLAGS := -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,-T,$(CURDIR)/scripts/static.ld
# Options of bench/run or bench/compare, such as --quick.
BENCH ?=

.DEFAULT_GOAL := help
# Set-up comes before its use, also with -j.
.NOTPARALLEL:
.PHONY: help demo kube-demo test check install static deb kills kube-kills kube-nodes bench bench-compare planted bpf fuzz sbom deny docs kube-begin setup-demo setup-test setup-proxies setup-kube setup-docs setup-bench

help: ## List these targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: setup-demo ## Set up, build, settings of a stock nginx that matter, capacity before and after (at most 10 minutes)
	$(CARGO) build --release --locked -p weir
	$(TARGET)/release/weir run stock-reverse-proxy --budget 160s
	$(TARGET)/release/weir run capacity --budget 420s

kube-demo: setup-kube ## Capacity of a real ingress-nginx in a small cluster on this machine (as root; at most 10 minutes after the builds)
	$(CARGO) build --release --locked -p weir
	scripts/kube-demo

test: setup-test kube-begin check ## Set up, then everything that CI runs: format, lints, all tests, the documentation
	scripts/docs
	@scripts/kube build all || echo "Tests of Kubernetes will not run: what could not be built is said above." >&2
	scripts/test

check: ## Format, lints, and licences of packages where cargo-deny is installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny --offline --locked check bans licenses sources -A unmatched-skip; \
	else \
		echo "Licences and sources of packages were not checked: cargo install --locked cargo-deny" >&2; \
	fi

install: ## Build and install weir, its man pages and shell completions (PREFIX=/usr/local, DESTDIR)
	$(CARGO) build --release --locked -p weir
	scripts/install $(TARGET)/release/weir "$(DESTDIR)$(PREFIX)"

static: ## Build a weir that needs no libraries, and try it in an empty root (docs/install.md)
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) rustc --release --locked -p weir --bin weir --target $(STATIC) -- $(STATIC_FLAGS)
	scripts/try-static $(TARGET)/$(STATIC)/release/weir

deb: ## Build a Debian package in target/
	$(CARGO) build --release --locked -p weir
	scripts/deb $(TARGET)/release/weir $(TARGET)

kills: setup-test ## Kill weir, its agents and the proxies 200 times and check what is left (as root; about 30 minutes)
	WEIR_KILLS=$(KILLS) $(CARGO) test --locked -p weir --test hosts kills -- --nocapture

kube-kills: setup-test setup-kube ## The same in a small cluster on this machine, and its connection to the API server, 50 times (as root; about 50 minutes)
	KUBE_TESTS=kills WEIR_KUBE_KILLS=$(KUBE_KILLS) $(CARGO) test --locked -p weir --test clusters node_tier -- --nocapture

kube-nodes: setup-test setup-kube ## Tests on two real nodes of a small cluster on this machine, one of which is lost (as root; about 8 minutes)
	$(CARGO) test --locked -p weir --test clusters nodes_tier -- --ignored --nocapture

planted: setup-test ## Plant limits on real proxies and check which limit is named first (as root, on a quiet machine; about 45 minutes)
	WEIR_PLANTED=all $(CARGO) test --release --locked -p weir --test limiters planted -- --nocapture

bench: setup-bench ## Side by side with other load generators (about 12 minutes)
	$(CARGO) build --release --locked -p weir
	cd bench && python3 -B -m unittest discover -q -t . -s tests
	bench/run $(BENCH)

bench-compare: setup-demo ## Two arms in slices beside the same arms restarted (about 50 minutes; needs Python)
	$(CARGO) build --release --locked -p weir
	cd bench && python3 -B -m unittest discover -q -t . -s tests
	bench/compare $(BENCH)

bpf: ## Make the BPF objects anew, after a change of their sources (needs clang)
	for source in crates/*/src/bpf/*.bpf.c; do scripts/bpf $$source $${source%.c}.o; done

sbom: ## Write what weir is built from, a CycloneDX bill of materials, to target/weir.cdx.json (cargo install --locked cargo-cyclonedx)
	@mkdir -p $(TARGET)
	$(CARGO) cyclonedx --quiet --manifest-path crates/weir/Cargo.toml --format json --describe binaries --spec-version 1.5
	mv crates/weir/weir_bin.cdx.json $(TARGET)/weir.cdx.json

# Of duplicates it sees neither those of tests alone nor those of features that are off.
deny: ## Check deny.toml whole, advisories too, over the network (cargo install --locked cargo-deny)
	$(CARGO) deny --locked check -A unmatched-skip

fuzz: ## Fuzz everything that reads a peer's bytes, a minute for each target (nightly Rust, cargo-fuzz)
	@fuzz/run

docs: setup-docs ## Build the documentation as a site with a search, target/site/book
	@scripts/docs

setup-demo:
	@scripts/setup demo

setup-test:
	@scripts/setup test

setup-proxies: ## Install the proxies that a study can compare
	@scripts/setup proxies

setup-kube: ## Install what a small Kubernetes cluster and real ingress controllers need, and build them (15 minutes the first time)
	@scripts/setup kube
	@scripts/kube build all

# What takes longest to build is begun first. Whoever asks for the same later waits for it.
kube-begin:
	@mkdir -p $(TARGET)
	@nice scripts/kube build all >$(TARGET)/kube-build.log 2>&1 </dev/null &

setup-docs:
	@scripts/setup docs

setup-bench:
	@scripts/setup bench
