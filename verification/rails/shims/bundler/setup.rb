# frozen_string_literal: true

# Rails' tests load their Gemfile by this name. Here the libraries that are installed take its place.
