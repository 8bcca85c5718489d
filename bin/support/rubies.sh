# shellcheck shell=bash
# Finds the Rubies that Heddle can be built with, and runs gems' commands with them. To be sourced, with the project's
# root as the working directory.

oldest_ruby=3.3

# The gems of bin/test and bin/demo. The Gemfile adds those that are needed on one Ruby only, such as RuboCop.
# shellcheck disable=SC2034 # the sourcing scripts use it
specs_gemfile=gemfiles/specs.gemfile

# Prints the Ruby's ABI version, such as 3.3, if Heddle can be built with it; fails otherwise.
usable_ruby() {
  "$1" -rrubygems -e '
    exit false unless RUBY_ENGINE == "ruby" && Gem::Version.new(RUBY_VERSION) >= Gem::Version.new(ARGV.fetch(0))
    exit false unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))
    begin
      require "bundler"
    rescue LoadError
      exit false
    end
    puts RUBY_VERSION[/\d+\.\d+/]
  ' "$oldest_ruby" 2>/dev/null
}

# Prints one usable Ruby per line, one for each ABI version: first `ruby`, which the user chose, then Rubies with a
# version in their name, as on Debian. HEDDLE_RUBIES, a list of paths, overrides the search.
find_rubies() {
  local candidates seen=" " candidate abi
  if [[ -n ${HEDDLE_RUBIES:-} ]]; then
    read -ra candidates <<<"$HEDDLE_RUBIES"
  else
    mapfile -t candidates < <(echo ruby; compgen -c ruby | grep -xE 'ruby[0-9]+\.[0-9]+' | sort -uV)
  fi
  for candidate in "${candidates[@]}"; do
    abi=$(usable_ruby "$candidate") || continue
    [[ $seen == *" $abi "* ]] && continue
    seen+="$abi "
    command -v "$candidate"
  done
}

# ruby_of ABI RUBIES...: prints the Ruby with this ABI version, such as 3.3; fails if there is none.
ruby_of() {
  local abi=$1 ruby
  shift
  for ruby in "$@"; do
    [[ $(usable_ruby "$ruby") == "$abi" ]] && echo "$ruby" && return
  done
  return 1
}

# run_bundle RUBY ARGUMENTS...: a bare `bundle` would run with the Ruby that its first line names.
run_bundle() {
  local ruby=$1
  shift
  BUNDLE_SILENCE_ROOT_WARNING=1 "$ruby" -e 'load Gem.bin_path("bundler", "bundle")' "$@"
}

# run_rake RUBY GEMFILE TASKS...
run_rake() {
  local ruby=$1 gemfile=$2
  shift 2
  BUNDLE_GEMFILE=$gemfile "$ruby" -rbundler/setup -e 'load Gem.bin_path("rake", "rake")' "$@"
}
