# frozen_string_literal: true

Ecosystem.library "ActiveRecord", requires: %w[active_record pg], version: "activerecord", server: :postgres,
                                  remark: "with `isolation_level = :fiber`" do
  def connect
    Class.new(ActiveRecord::Base) { self.abstract_class = true }.then do
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber if defined?(Heddle)
      return ActiveRecord::Base if ActiveRecord::Base.connection_handler.connection_pool_list.any?

      ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "127.0.0.1", port: server.port, pool: 20,
                                              username: "postgres", database: "postgres")
      ActiveRecord::Base
    end
  end

  def wait(client, seconds)
    client.connection_pool.with_connection { |connection| connection.execute("SELECT pg_sleep(#{seconds})") }
  end

  def usable?(client)
    client.connection_pool.with_connection { |connection| connection.select_value("SELECT 7") == 7 }
  end

  def works(client)
    client.connection_pool.with_connection do |connection|
      connection.create_table(:looms) { |table| table.string :name }
    end
    model = Class.new(client) { self.table_name = "looms" }
    model.transaction { %w[Jacquard Dobby].each { |name| model.create!(name:) } }
    model.transaction { model.create!(name: "hand") && raise(ActiveRecord::Rollback) }
    model.order(:name).pluck(:name)
  end
end
