# frozen_string_literal: true

# An error of a task comes out of its value, with its own backtrace

failing = task { settle && Integer("no number") }
error = failing.value rescue $!
say error.class, error.message, error.backtrace_locations.any? { |location| location.path == __FILE__ }
