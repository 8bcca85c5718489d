# frozen_string_literal: true

# The same pages as actions of a Rails application in one file, and with a DATABASE_URL one that queries.
ENV["RAILS_ENV"] = "production"
require "rails"
require "action_controller/railtie"
require "active_record/railtie" if ENV["DATABASE_URL"]

class Application < Rails::Application
  config.eager_load = true
  config.secret_key_base = "benchmark"
  config.consider_all_requests_local = false
  config.hosts.clear
  config.logger = Logger.new(File::NULL)
  config.active_support.isolation_level = :fiber if ENV["ISOLATION"] == "fiber"
  routes.append do
    get "cpu", to: "pages#cpu"
    get "slow", to: "pages#slow"
    get "hello", to: "pages#hello"
    get "query", to: "pages#query"
  end
end

# The pages.
class PagesController < ActionController::Base # rubocop:disable Style/OneClassPerFile -- an application in one file
  def hello = render(plain: "hello\n")

  def cpu
    turns = 0
    turns += 1 while turns < 1_000_000
    render plain: "computed\n"
  end

  def slow
    sleep 0.3
    render plain: "slow\n"
  end

  def query
    ActiveRecord::Base.with_connection { |connection| connection.execute("SELECT pg_sleep(0.1)") }
    render plain: "queried\n"
  end
end

Application.initialize!
run Application
