# frozen_string_literal: true

# A Rails application with a database, files, jobs, caches, events and Action Cable. DATABASE_URL names the database.
# With SOLID_SRC, a folder with the source trees of Solid Queue, Solid Cache and Solid Cable, these take the place of
# Active Job's adapter `:heddle`, of the cache in memory, and of Action Cable's adapter `async`.
TREES = ENV.fetch("SOLID_SRC", nil)
solid = (TREES ? %w[solid_queue solid_cache solid_cable] : []).to_h { |name| [name, File.join(TREES, name)] }
solid.each_value { |folder| $LOAD_PATH.unshift("#{folder}/lib") }
# Rails up to 8.1 passes json's methods what json 3 does not take.
gem "json", "< 3"
begin
  %w[pg websocket/driver rails active_record/railtie active_storage/engine active_job/railtie
     action_controller/railtie action_cable/engine].each { |name| require name }
rescue LoadError
  exit! 2
end
require "heddle/rails"
solid.each_key { |name| require name }

File.write("config/cable.yml", <<~YAML)
  test: { adapter: #{TREES ? "solid_cable, polling_interval: 0.01.seconds" : "async"} }
YAML

# Keeps a value for the rest of the request.
LOCAL_CACHE = ActiveSupport::Cache::NullStore.new

# The application.
class Application < Rails::Application
  config.root = Dir.pwd
  config.eager_load = true
  config.logger = Logger.new(nil)
  config.secret_key_base = "0" * 40
  config.hosts = nil
  config.cache_store = TREES ? :solid_cache_store : :memory_store
  config.active_job.queue_adapter = TREES ? :solid_queue : :heddle
  config.active_record.async_query_executor = :global_thread_pool
  config.active_storage.service = :disk
  config.active_storage.service_configurations = { disk: { service: "Disk", root: "files" } }
  config.action_cable.disable_request_forgery_protection = true
  config.heddle.fibers = nil
  config.middleware.use(LOCAL_CACHE.middleware)
  routes.append do
    %w[push pop say].each { |action| get "#{action}/:word", to: "rooms##{action}" }
    %w[write count count_twice roll_back beside].each { |action| get "#{action}/:word", to: "words##{action}" }
    %w[keep kept local increment].each { |action| get "#{action}/:word", to: "caches##{action}" }
    get "events/:word", to: "events#show"
    get "perform/:word", to: "jobs#perform"
    post "files/:word", to: "files#create"
  end
end

# Events that requests and examples wait for, by their names.
ROOMS = Concurrent::Map.new { |rooms, name| rooms.compute_if_absent(name) { Thread::Queue.new } }

# A record.
class Word < ActiveRecord::Base
  scope :named, ->(name) { where(name:) }
end

# Tells by a notification of the database that it has run, because it may run in another process.
class WorkJob < ActiveJob::Base
  def perform(word)
    Word.create!(name: word)
    Word.connection.execute("NOTIFY words, '#{word}'")
  end
end

# What all actions have.
class WordController < ActionController::Base
  skip_forgery_protection

  private

  def word = params[:word]

  # Lets an example do something in the middle of an action.
  def pause
    ROOMS["#{word} paused"].push(true)
    ROOMS["#{word} continues"].pop
  end

  def twice
    first = yield
    pause
    render plain: "#{first} #{yield}"
  end
end

class RoomsController < WordController
  def push = ROOMS[word].push(true) && head(:ok)
  def pop = ROOMS[word].pop && head(:ok)
  def say = ActionCable.server.broadcast("words", word) && head(:ok)
end

class WordsController < WordController
  def write = Word.create!(name: word) && head(:ok)
  def count = render(plain: Word.named(word).count)
  def count_twice = twice { Word.named(word).count }

  def roll_back
    Word.transaction do
      Word.create!(name: word)
      pause
      raise ActiveRecord::Rollback
    end
    head :ok
  end

  # Waits until the database has begun a query of `load_async`, and then lets it end.
  def beside
    Word.with_connection do |connection|
      connection.execute("SELECT pg_advisory_lock(1)")
      slow = Word.named(word).where("pg_advisory_xact_lock(1) IS NOT NULL").load_async
      waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      sleep(0) until Word.uncached { connection.select_value(waiting) } == 1
      connection.execute("SELECT pg_advisory_unlock(1)")
      render plain: slow.to_a.size
    end
  end
end

class CachesController < WordController
  def keep = Rails.cache.write(word, params[:value].to_i) && head(:ok)
  def kept = render(plain: Rails.cache.read(word))
  def increment = Rails.cache.increment(word) && head(:ok)

  def local
    LOCAL_CACHE.write("word", word)
    twice { LOCAL_CACHE.read("word") }
  end
end

class EventsController < WordController
  include ActionController::Live

  def show
    response.headers["content-type"] = "text/event-stream"
    events = SSE.new(response.stream, event: "turn")
    events.write({ word: }, id: 1)
    ROOMS[word].pop
    events.write({ on: Fiber.scheduler.class.name }, id: 2)
  ensure
    events.close
  end
end

class JobsController < WordController
  def perform
    Word.with_connection do |connection|
      database = connection.raw_connection
      database.exec("LISTEN words")
      WorkJob.perform_later(word)
      nil until database.wait_for_notify { |_, _, told| break told == word }
      database.exec("UNLISTEN words")
    end
    render plain: Word.named(word).count
  end
end

class FilesController < WordController
  def create
    blob = ActiveStorage::Blob.create_and_upload!(io: request.body, filename: "#{word}.txt")
    paths = %i[rails_storage_redirect_path rails_storage_proxy_path].map do |name|
      Application.routes.url_helpers.public_send(name, blob, only_path: true)
    end
    render plain: paths.join("\n")
  end
end

class WordsChannel < ActionCable::Channel::Base
  def subscribed = stream_from("words")
end

Application.initialize!
ActiveRecord::Migration.verbose = false
ActiveRecord::Schema.define { create_table(:words) { |table| table.string(:name, null: false) } }
ActiveRecord::MigrationContext.new(ActiveStorage::Engine.root.join("db/migrate").to_s).migrate
solid.each { |name, folder| load Dir["#{folder}/lib/generators/#{name}/install/templates/db/*_schema.rb"].first }
ActiveRecord::Base.connection_handler.clear_active_connections!(:all)

run Application
