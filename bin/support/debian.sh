# shellcheck shell=bash
# Installs Ruby 3.3 and 3.4 on Debian 12, whose own Ruby is 3.1. To be sourced.
#
# They come from Debian's testing and experimental suites, with the gems as Debian packages, so that no gem registry is
# needed. Both suites are pinned below every installed package, so an upgrade takes nothing else from them.

debian_release=bookworm
newer_suites=(forky experimental)
pin_priority=90

sources_dir=/etc/apt/sources.list.d
pin_file=/etc/apt/preferences.d/heddle
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# libclang: bindgen can't parse Ruby 3.4's headers with Debian 12's LLVM 14.
forky_packages=(ruby3.3 ruby3.3-dev ruby-rspec rake rake-compiler ruby-rb-sys ruby-benchmark-ips bundler rubocop
  ruby-async ruby-io-event yard libclang-dev make)
experimental_packages=(ruby3.4 ruby3.4-dev)

# Libraries that some specs use Heddle with, and need no server.
forky_quick_packages=(ruby-activerecord ruby-sqlite3 ruby-stackprof puma ruby-rack ruby-rackup ruby-concurrent
  ruby-actioncable ruby-activejob ruby-railties ruby-sidekiq
  ruby-kramdown ruby-kramdown-parser-gfm ruby-rouge)
# Servers and their libraries. The database server comes from the machine's own release.
forky_test_packages=("${forky_quick_packages[@]}" ruby-pg ruby-redis redis-server ruby-grpc ruby-mysql2 ruby-typhoeus
  ruby-activestorage ruby-rack-timeout ruby-sentry-ruby)
own_test_packages=(postgresql chromium-headless-shell fuse python3-fusepy)
# What `rake ecosystem` runs besides. The servers come from the machine's own release, whose systemd cannot read the
# lists of users that forky's bring along.
forky_ecosystem_packages=(ruby-bunny ruby-byebug ruby-connection-pool ruby-dalli ruby-excon ruby-faraday
  ruby-http ruby-httpx ruby-net-http-persistent ruby-sequel ruby-websocket-driver)
own_ecosystem_packages=(memcached mariadb-server rabbitmq-server)
# What the servers need in the version of the libraries (libc6, libtinfo6) that Ruby's packages have upgraded. Where
# they are installed, they have been upgraded along.
forky_server_packages=(libncurses6 locales)

# --force-overwrite: a file moved between Debian's OpenSSL packages.
apt_options=(-y -qq --no-install-recommends -o Dpkg::Options::=--force-overwrite -o Dpkg::Use-Pty=0
  -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)

sources_file() {
  echo "$sources_dir/heddle-$1.sources"
}

# Whether an earlier run has begun to set up this machine.
debian_begun() {
  [[ -e $(sources_file "${newer_suites[0]}") ]]
}

debian_mirror() {
  # shellcheck disable=SC2016 # apt fills these in
  apt-get indextargets --format '$(SITE) $(ORIGIN) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$debian_release" '$2 == "Debian" && $3 == release && $4 == "main" && !site { site = $1 }
      END { if (!site) exit 1; print site }'
}

# Only root on Debian 12 can be set up this way. The release is read from apt's sources, because the packages from
# testing replace /etc/os-release by a newer one.
debian_can_be_set_up() {
  [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null && grep -qx 'ID=debian' /etc/os-release || return 1
  # apt knows a source's origin only from the lists that it has fetched.
  debian_mirror >/dev/null || { apt_get_quietly update && debian_mirror >/dev/null; }
}

# missing_packages PACKAGES...: prints those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

# announce_apt_sources MIRROR PACKAGES...: says which files are written as root, and how to undo that.
announce_apt_sources() {
  local mirror=$1 suite files=()
  shift
  for suite in "${newer_suites[@]}"; do
    files+=("$(sources_file "$suite")")
  done
  echo "Debian $debian_release has no Ruby 3.3. As root, this script adds package sources and installs from them:"
  for suite in "${newer_suites[@]}"; do
    echo "  $(sources_file "$suite"): $mirror $suite main"
  done
  echo "  $pin_file: pins both at priority $pin_priority, below every installed package"
  echo "  packages: $*"
  echo "To remove the sources and these packages later:"
  echo "  rm ${files[*]} $pin_file"
  echo "  apt-get update"
  echo "  apt-get remove $*"
  echo "Libraries that the installation upgrades, such as libc6, stay upgraded."
}

write_apt_sources() {
  local mirror=$1 suite
  for suite in "${newer_suites[@]}"; do
    printf '%s\n' 'Types: deb' "URIs: $mirror" "Suites: $suite" 'Components: main' "Signed-By: $keyring" \
      >"$(sources_file "$suite")"
  done
  # apt matches a suite by its codename (n) or its archive name (a); experimental's codename is a different word.
  for suite in "${newer_suites[@]}"; do
    printf '%s\n' 'Package: *' "Pin: release n=$suite" "Pin-Priority: $pin_priority" '' \
      'Package: *' "Pin: release a=$suite" "Pin-Priority: $pin_priority" ''
  done >"$pin_file"
}

# Prints apt-get's output, which is hundreds of lines, only if it fails.
apt_get_quietly() {
  local log
  log=$(mktemp)
  DEBIAN_FRONTEND=noninteractive apt-get "${apt_options[@]}" "$@" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    return 1
  }
  rm "$log"
}

set_up_debian() {
  local missing mirror
  mapfile -t missing < <(missing_packages "${forky_packages[@]}" "${experimental_packages[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  debian_can_be_set_up || { echo "apt has no sources of Debian $debian_release" >&2; return 1; }
  mirror=$(debian_mirror)
  announce_apt_sources "$mirror" "${missing[@]}"
  echo "Installing; this takes a minute."
  write_apt_sources "$mirror"
  # An earlier run may have been interrupted.
  dpkg --configure -a >/dev/null
  apt_get_quietly update
  apt_get_quietly install -t forky "${forky_packages[@]}"
  apt_get_quietly install -t experimental "${experimental_packages[@]}"
}

# announce_test_packages PACKAGES...: prints those that are missing, and how to remove them; fails if none is.
announce_test_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 1
  echo "Installing for some specs, as root: ${missing[*]}"
  echo "To remove them later: apt-get remove ${missing[*]}"
}

# For bin/test: no server, no browser.
set_up_debian_for_quick_tests() {
  announce_test_packages "${forky_quick_packages[@]}" || return 0
  without_starting_services apt_get_quietly install -t forky "${forky_quick_packages[@]}"
}

# For bin/test --all: also what `rake ecosystem` runs.
set_up_debian_for_all_tests() {
  announce_test_packages "${forky_test_packages[@]}" "${forky_ecosystem_packages[@]}" "${own_test_packages[@]}" \
    "${own_ecosystem_packages[@]}" "${forky_server_packages[@]}" || return 0
  local upgraded
  mapfile -t upgraded < <(missing_packages "${forky_server_packages[@]}")
  without_starting_services apt_get_quietly install -t forky "${forky_test_packages[@]}" \
    "${forky_ecosystem_packages[@]}" && install_servers "${upgraded[@]/%//forky}"
}

# From forky only where the machine's own cannot be installed: other packages may have upgraded what they depend on,
# such as Perl, to forky's version.
install_servers() {
  local servers=("${own_test_packages[@]}" "${own_ecosystem_packages[@]}")
  without_starting_services apt_get_quietly install "${servers[@]}" "$@" ||
    without_starting_services apt_get_quietly install -t forky "${servers[@]}"
}

# Debian's packages start their services, unless this policy forbids it. The specs start servers of their own.
without_starting_services() {
  local policy=/usr/sbin/policy-rc.d forbidden=101 result=0
  [[ -e $policy ]] && { "$@"; return; }
  printf '#!/bin/sh\nexit %s\n' "$forbidden" >"$policy"
  chmod +x "$policy"
  "$@" || result=$?
  rm "$policy"
  return "$result"
}

# fetch_ruby_source PACKAGE FOLDER: unpacks the sources of a Ruby in forky, with Ruby's own tests, and prints their
# folder. It does not change apt's own sources.
#
# Only the tarball is needed, and apt checks it against the signed index. The mirror may lack the package's .dsc; then
# apt-get fails although it has fetched the tarball.
fetch_ruby_source() {
  local package=$1 folder=$2 apt tarball mirror
  debian_can_be_set_up || return 1
  mirror=$(debian_mirror)
  rm -rf "$folder"
  apt=$folder/apt
  mkdir -p "$apt/sources" "$apt/lists/partial" "$folder/ruby"
  folder=$(realpath "$folder")
  apt=$folder/apt
  printf '%s\n' 'Types: deb-src' "URIs: $mirror" 'Suites: forky' 'Components: main' "Signed-By: $keyring" \
    >"$apt/sources/forky.sources"
  local own_lists=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources"
    -o Dir::State::lists="$apt/lists")
  apt_get_quietly "${own_lists[@]}" update || return 1
  (cd "$folder" && apt-get "${apt_options[@]}" "${own_lists[@]}" source --download-only "$package") \
    >"$apt/log" 2>&1 || true
  tarball=$(find "$folder" -maxdepth 1 -name '*.orig.tar.*' ! -name '*.asc' -print -quit)
  [[ -n $tarball ]] || {
    cat "$apt/log" >&2
    return 1
  }
  tar -xf "$tarball" -C "$folder/ruby" --strip-components=1 && echo "$folder/ruby"
}
