#!/usr/bin/env bash
# Gets what the integration tests need and a machine may lack: the class paths
# of a real HBase, a real OpenTSDB and writers in Java (Maven), pyarrow and other
# readers of Arrow (a virtual environment; npm), client libraries of OpenTSDB and OpenTelemetry, a validator of
# OpenAPI and what checks our own package (more environments), playwright-core (npm), Chromium's headless shell,
# VictoriaMetrics, Prometheus, collectd, lintian, buildah and a Kerberos KDC (the system's
# packages), and a Debian system for our own packages.
#
#   setup.sh          all of it
#   setup.sh STEP...  only these, see all_steps
#
# Running it again does nothing once everything is there: each step keeps a
# stamp under build/setup that names the versions it was made from. Whatever
# cannot be had is named in one line, and the script fails; it skips nothing.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/setup
mkdir -p "$out"
# shellcheck source=versions.env
. "$here/versions.env"

fail() {
	echo "setup: $*" >&2
	exit 1
}

need() { # need COMMAND WHAT-IT-IS-FOR
	command -v "$1" >/dev/null 2>&1 || fail "$1 is missing, needed for $2; install it and run make setup again"
}

# stamped NAME VALUE: does the stamp of step NAME say VALUE?
stamped() { [ -f "$out/$1.stamp" ] && [ "$(cat "$out/$1.stamp")" = "$2" ]; }
stamp() { printf '%s\n' "$2" >"$out/$1.stamp"; }

# logged NAME COMMAND...: runs it with its output in a log; a failure shows
# its end.
logged() {
	local name=$1
	shift
	if ! "$@" >"$out/$name.log" 2>&1; then
		tail -n 15 "$out/$name.log" >&2
		fail "$name: '$*' failed; whole output in $out/$name.log"
	fi
}

jars_present() { # every entry of the class path file exists
	[ -s "$1" ] || return 1
	local jar
	while IFS= read -r jar; do
		[ -f "$jar" ] || return 1
	done < <(tr ':' '\n' <"$1")
}

classpath() { # classpath NAME VERSIONS -Dproperty=...
	local name=$1 versions=$2
	shift 2
	if stamped "$name" "$versions" && jars_present "$out/$name.classpath"; then return; fi
	need java "real HBase and OpenTSDB servers, and writers in Java"
	need mvn "the class paths of HBase, OpenTSDB and writers in Java"
	rm -f "$out/$name.stamp" "$out/$name.classpath"
	logged "$name" mvn -B -ntp -q -f "$here/maven/$name/pom.xml" "$@" \
		"org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN_VERSION:build-classpath" \
		"-Dmdep.outputFile=$out/$name.classpath"
	jars_present "$out/$name.classpath" || fail "$name: Maven ended well but $out/$name.classpath names missing jars"
	stamp "$name" "$versions"
	echo "setup: $name class path, $(tr ':' '\n' <"$out/$name.classpath" | wc -l) jars"
}

# Other versions of HBase: the file of a class path is named by its version, so it needs no
# stamp.
other_hbases() { # other_hbases VERSION...
	local version path
	mkdir -p "$root/build/hbase"
	for version in "$@"; do
		path=$root/build/hbase/$version.classpath
		jars_present "$path" && continue
		need java "real HBase servers"
		need mvn "the class path of HBase $version"
		if ! mvn -B -ntp -q -f "$here/maven/hbase/pom.xml" "-Dhbase.version=$version" \
			"org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN_VERSION:build-classpath" \
			"-Dmdep.outputFile=$path.new" >"$root/build/hbase/$version.log" 2>&1; then
			tail -n 15 "$root/build/hbase/$version.log" >&2
			fail "hbase-$version: Maven failed; whole output in $root/build/hbase/$version.log"
		fi
		jars_present "$path.new" || fail "hbase-$version: Maven ended well but $path.new names missing jars"
		mv "$path.new" "$path"
		echo "setup: HBase $version class path, $(tr ':' '\n' <"$path" | wc -l) jars"
	done
}

# What make test runs of Java.
hbase_and_opentsdb() {
	classpath hbase "$HBASE_VERSION" "-Dhbase.version=$HBASE_VERSION"
	classpath opentsdb "$OPENTSDB_VERSION $JAXB_API_VERSION" \
		"-Dopentsdb.version=$OPENTSDB_VERSION" "-Djaxb.version=$JAXB_API_VERSION"
}

java_programs() {
	hbase_and_opentsdb
	# shellcheck disable=SC2086 # versions have no blanks inside
	other_hbases $HBASE_OTHER_VERSIONS
	classpath writers "$MICROMETER_VERSION $METRICS_OPENTSDB_VERSION $JAXB_API_VERSION" \
		"-Dmicrometer.version=$MICROMETER_VERSION" "-Dmetrics-opentsdb.version=$METRICS_OPENTSDB_VERSION" "-Djaxb.version=$JAXB_API_VERSION"
}

# What make matrix needs and make test does not.
matrix_hbases() {
	# shellcheck disable=SC2086
	other_hbases $HBASE_MATRIX_VERSIONS
}

python_venv() {
	local venv=$root/build/venv package=$root/integration/python packages versions
	packages=(
		"pyarrow==$PYARROW_VERSION" "pandas==$PANDAS_VERSION" "polars==$POLARS_VERSION" "duckdb==$DUCKDB_VERSION" "pytz==$PYTZ_VERSION"
		"websockets==$WEBSOCKETS_VERSION" "matplotlib==$MATPLOTLIB_VERSION" "nbclient==$NBCLIENT_VERSION"
		"ipykernel==$IPYKERNEL_VERSION" "flit_core==$FLIT_CORE_VERSION"
	)
	versions="${packages[*]} $(cksum <"$package/pyproject.toml")"
	if stamped python "$versions" && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
	need python3 "reading our Arrow streams with pyarrow"
	rm -rf "$venv" "$out/python.stamp"
	logged python-venv python3 -m venv "$venv"
	logged python-pip "$venv/bin/python" -m pip install --quiet --no-compile "${packages[@]}"
	# Our own package, as it lies here: what is edited holds at once.
	logged python-downpour "$venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --editable "$package"
	logged python-check "$venv/bin/python" -c 'import pyarrow.ipc, pandas, polars, duckdb, nbclient, downpour'
	stamp python "$versions"
	echo "setup: python environment, ${packages[*]}"
}

arrow_js() {
	local readers=$root/integration/readers versions
	need node "reading our Arrow streams with apache-arrow"
	need npm "reading our Arrow streams with apache-arrow"
	versions="$(node --version) $(cksum <"$readers/package-lock.json")"
	if stamped arrow-js "$versions" && [ -d "$readers/node_modules/apache-arrow" ]; then return; fi
	rm -f "$out/arrow-js.stamp"
	logged arrow-js npm ci --no-audit --no-fund --ignore-scripts --prefix "$readers"
	stamp arrow-js "$versions"
	echo "setup: apache-arrow for $(node --version)"
}

# python_environment NAME INTERPRETER MODULES PACKAGE...: an environment in build/NAME,
# in which the modules can be imported.
python_environment() {
	local name=$1 interpreter=$2 modules=$3 venv=$root/build/$1 versions
	shift 3
	versions="$("$interpreter" --version) $*"
	if stamped "$name" "$versions" && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
	rm -rf "$venv" "$out/$name.stamp"
	logged "$name-venv" "$interpreter" -m venv "$venv"
	logged "$name-pip" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
	logged "$name-check" "$venv/bin/python" -c "import $modules"
	stamp "$name" "$versions"
	echo "setup: $name, $versions"
}

# pythons VERSION...: the interpreters of these versions that are there, in this order.
pythons() {
	local version candidate
	for version in "$@"; do
		for candidate in "$(command -v "python$version")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
			if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$version" ]; then
				echo "$candidate"
				break
			fi
		done
	done
}

python_checks() {
	need python3 "checks of our manifests and of the package for Python"
	python_environment python-checks python3 kubernetes_validate "kubernetes-validate==$KUBERNETES_VALIDATE_VERSION"
}

# Our package for Python with the oldest libraries that it takes, on the oldest Python
# for which there are these libraries.
python_oldest() {
	local interpreter
	interpreter=$(pythons 3.9 3.10 3.11 3.12 | head -n 1)
	[ -n "$interpreter" ] || fail "no Python from 3.9 to 3.12 is there, for the oldest libraries that our package takes; install one and run make setup again"
	python_environment python-oldest "$interpreter" "pyarrow.ipc, pandas, polars, duckdb, websockets, mypy" "numpy==$OLDEST_NUMPY_VERSION" "pandas==$OLDEST_PANDAS_VERSION" \
		"pyarrow==$OLDEST_PYARROW_VERSION" "websockets==$OLDEST_WEBSOCKETS_VERSION" "polars==$OLDEST_POLARS_VERSION" "duckdb==$OLDEST_DUCKDB_VERSION" "pytz==$PYTZ_VERSION" "mypy==$OLDEST_MYPY_VERSION" \
		"pandas-stubs==$OLDEST_PANDAS_STUBS_VERSION"
}

# The same with the newest ones, on the newest Python that is there.
python_newest() {
	local interpreter
	interpreter=$(pythons 3.14 3.13 3.12 3.11 | head -n 1)
	[ -n "$interpreter" ] || fail "no Python from 3.11 to 3.14 is there; install one and run make setup again"
	python_environment python-newest "$interpreter" "pyarrow.ipc, pandas, polars, duckdb, websockets, mypy" "pandas==$PANDAS_VERSION" "pyarrow==$PYARROW_VERSION" \
		"websockets==$WEBSOCKETS_VERSION" "polars==$POLARS_VERSION" "duckdb==$DUCKDB_VERSION" "pytz==$PYTZ_VERSION" "mypy==$MYPY_VERSION" "pandas-stubs==$PANDAS_STUBS_VERSION" "pyarrow-stubs==$PYARROW_STUBS_VERSION"
}

client_libraries() {
	local versions="$OPENTSDB_PY_VERSION $POTSDB_VERSION $OPENTSDB_HTTP_CLIENT_VERSION $OPENTSDB2PY_VERSION $REQUESTS_VERSION $OPENTELEMETRY_VERSION"
	local venv=$root/build/clients-venv
	if stamped clients "$versions" && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
	need python3 "client libraries of OpenTSDB and OpenTelemetry"
	rm -rf "$venv" "$out/clients.stamp"
	logged clients-venv python3 -m venv "$venv"
	logged clients-pip "$venv/bin/python" -m pip install --quiet \
		"opentsdb-py==$OPENTSDB_PY_VERSION" "potsdb==$POTSDB_VERSION" "opentsdb-http-client==$OPENTSDB_HTTP_CLIENT_VERSION" \
		"opentsdb2py==$OPENTSDB2PY_VERSION" "requests==$REQUESTS_VERSION" \
		"opentelemetry-sdk==$OPENTELEMETRY_VERSION" "opentelemetry-exporter-otlp-proto-http==$OPENTELEMETRY_VERSION"
	logged clients-check "$venv/bin/python" -c 'import opentsdb, potsdb, opentsdb_http_client.http_client, opentelemetry.exporter.otlp.proto.http'
	stamp clients "$versions"
	echo "setup: client libraries of OpenTSDB and OpenTelemetry, $versions"
}

openapi_validator() {
	local venv=$root/build/openapi-venv
	if stamped openapi "$OPENAPI_SPEC_VALIDATOR_VERSION" && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
	need python3 "a validator of OpenAPI"
	rm -rf "$venv" "$out/openapi.stamp"
	logged openapi-venv python3 -m venv "$venv"
	logged openapi-pip "$venv/bin/python" -m pip install --quiet "openapi-spec-validator==$OPENAPI_SPEC_VALIDATOR_VERSION"
	logged openapi-check "$venv/bin/python" -c 'import openapi_spec_validator'
	stamp openapi "$OPENAPI_SPEC_VALIDATOR_VERSION"
	echo "setup: openapi-spec-validator $OPENAPI_SPEC_VALIDATOR_VERSION"
}

browser_driver() {
	local browser=$root/integration/browser versions
	need node "the browser test"
	need npm "the browser test"
	versions="$(node --version) $(cksum <"$browser/package-lock.json")"
	if stamped browser "$versions" && [ -f "$browser/node_modules/playwright-core/package.json" ]; then return; fi
	rm -f "$out/browser.stamp"
	logged browser npm ci --no-audit --no-fund --ignore-scripts --prefix "$browser"
	stamp browser "$versions"
	echo "setup: playwright-core for $(node --version)"
}

# installed COMMAND PACKAGE...: the system's packages, which bring a command and no service.
installed() {
	local program=$1 lock
	shift
	command -v "$program" >/dev/null 2>&1 && return
	if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
		fail "$program is missing and only root with apt-get can install it here; install a $program command and run make setup again"
	fi
	exec {lock}>"$out/apt.lock" # the steps run side by side, and apt-get alone
	flock "$lock"
	logged apt-update apt-get update
	logged "$program" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
	exec {lock}>&-
	command -v "$program" >/dev/null 2>&1 || fail "$program: apt-get ended well but there is no $program command"
	echo "setup: $("$program" --version 2>/dev/null | head -n 1)"
}

browser_program() { installed chromium-headless-shell chromium-headless-shell fonts-dejavu-core; }

package_checks() { installed lintian lintian; }

# unpacked NAME WHAT-IT-IS-FOR PACKAGE...: the system's packages under $out/NAME,
# unpacked and not installed: installing them would start a service on the machine.
# The stamp names the version of the first.
unpacked() {
	local name=$1 purpose=$2 dir=$out/$1 deb
	shift 2
	rm -rf "$dir" "$out/$name.stamp"
	mkdir -p "$dir"
	need apt-get "$purpose"
	need dpkg-deb "$purpose"
	if ! (cd "$dir" && apt-get download "$@") >"$out/$name.log" 2>&1; then
		[ "$(id -u)" = 0 ] && logged "apt-update-$name" apt-get update
		(cd "$dir" && logged "$name" apt-get download "$@") || exit 1
	fi
	for deb in "$dir"/*.deb; do
		logged "$name-unpack" dpkg-deb -x "$deb" "$dir"
	done
	deb=$(ls "$dir/$1"_*.deb) || fail "$name: apt-get download left no package $1"
	stamp "$name" "$(dpkg-deb -f "$deb" Version)"
	rm -f "$dir"/*.deb
	echo "setup: $name $(cat "$out/$name.stamp")"
}

victoria_metrics() {
	local program=$out/victoria-metrics/usr/bin/victoria-metrics
	if [ -f "$out/victoria-metrics.stamp" ] && "$program" -version >/dev/null 2>&1; then return; fi
	unpacked victoria-metrics "VictoriaMetrics, a peer of the benchmarks" victoria-metrics
	logged victoria-start "$program" -version
}

prometheus() {
	local programs=$out/prometheus/usr/bin
	if [ -f "$out/prometheus.stamp" ] && "$programs/prometheus" --version >/dev/null 2>&1; then return; fi
	unpacked prometheus "Prometheus, which writes to us and reads from us, and promtool, which checks our alert rules" prometheus
	logged prometheus-start "$programs/prometheus" --version
	logged promtool-start "$programs/promtool" --version
}

# It starts as it is unpacked, and is told where its settings are.
image_builder() {
	local program=$out/buildah/usr/bin/buildah libraries
	libraries=$out/buildah/usr/lib/$(uname -m)-linux-gnu
	if [ -f "$out/buildah.stamp" ] && LD_LIBRARY_PATH=$libraries "$program" --version >/dev/null 2>&1; then return; fi
	unpacked buildah "buildah, which builds our container images" buildah libgpgme11 libsubid4 golang-github-containers-common golang-github-containers-image
	logged buildah-start env "LD_LIBRARY_PATH=$libraries" "$program" --version
}

collectd() {
	local program=$out/collectd/usr/sbin/collectd libraries
	libraries=$out/collectd/usr/lib/$(uname -m)-linux-gnu
	if [ -f "$out/collectd.stamp" ] && LD_LIBRARY_PATH=$libraries "$program" -h >/dev/null 2>&1; then return; fi
	unpacked collectd "collectd, which writes to us" collectd-core libltdl7
	logged collectd-start env "LD_LIBRARY_PATH=$libraries" "$program" -h
}

kerberos_kdc() {
	local dir=$out/kdc libraries
	libraries=$dir/usr/lib/$(uname -m)-linux-gnu:$dir/lib/$(uname -m)-linux-gnu
	# Without a database it complains, but it has found its libraries.
	kdc_starts() { [ -x "$dir/usr/sbin/krb5kdc" ] && ! LD_LIBRARY_PATH=$libraries ldd "$dir/usr/sbin/krb5kdc" "$dir/usr/sbin/kadmin.local" "$dir/usr/bin/kinit" | grep -q 'not found'; }
	if [ -f "$out/kdc.stamp" ] && kdc_starts; then return; fi
	unpacked kdc "a KDC for a secured HBase" krb5-kdc krb5-admin-server krb5-user libkdb5-10 libkadm5srv-mit12 libkadm5clnt-mit12 libgssrpc4 \
		libk5crypto3 libkrb5-3 libkrb5support0 libgssapi-krb5-2 libverto1 libverto-libev1 libev4 libkeyutils1 libcom-err2 libss2
	kdc_starts || fail "kdc: krb5kdc, kadmin.local or kinit lacks a library"
}

# A minimal Debian of this machine's own release, in which packages are installed
# and their units checked. It needs root.
debian_system() {
	local dir=$out/debian scripts=$out/debootstrap release mirror
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	if stamped debian "$release" && [ -x "$dir/usr/bin/systemd-analyze" ]; then return; fi
	unpacked debootstrap "a Debian system in which our packages are installed" debootstrap
	mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' | awk -v release="$release" '$1 == release { print $2; exit }')
	rm -rf "$dir" "$out/debian.stamp"
	logged debian env "DEBOOTSTRAP_DIR=$scripts/usr/share/debootstrap" \
		"$scripts/usr/sbin/debootstrap" --variant=minbase --include=systemd "$release" "$dir" "$mirror"
	rm -rf "$dir"/var/cache/apt/archives/*.deb "$dir"/var/lib/apt/lists/*
	stamp debian "$release"
	echo "setup: a Debian system, $release"
}

need go "everything"

all_steps=(java_programs python_venv python_checks python_oldest python_newest client_libraries openapi_validator arrow_js browser_driver browser_program package_checks image_builder victoria_metrics prometheus
	collectd kerberos_kdc debian_system)
steps=("$@")
if [ $# = 0 ]; then
	steps=("${all_steps[@]}")
fi
all_steps+=(hbase_and_opentsdb matrix_hbases) # only where they are named
for step in "${steps[@]}"; do
	[[ " ${all_steps[*]} " == *" $step "* ]] || fail "got step '$step', want one of ${all_steps[*]}"
done

# The steps use several registries and wait mostly for the network. Those with Maven run one after the other: its local
# repository has no lock, they share class paths, and a target may name one of them twice.
alone() {
	case $1 in
	java_programs | hbase_and_opentsdb | matrix_hbases)
		exec 9>"$out/maven.lock"
		flock 9
		;;
	esac
	"$1"
}
pids=()
for step in "${steps[@]}"; do
	(alone "$step") &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do
	wait "$pid" || bad=1
done
[ "$bad" = 0 ] || fail "something is missing (see above); what needs it cannot run"
