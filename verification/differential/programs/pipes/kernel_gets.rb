# frozen_string_literal: true

# Kernel#gets and readlines read $stdin

ARGV.clear
say gets, readline, readlines
