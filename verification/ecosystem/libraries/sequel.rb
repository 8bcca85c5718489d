# frozen_string_literal: true

Ecosystem.library "Sequel", requires: %w[sequel pg], version: "sequel", server: :postgres,
                            remark: "with the extension `fiber_concurrency`" do
  def connect
    Sequel.extension(:fiber_concurrency) if defined?(Heddle)
    Sequel.connect(adapter: "postgres", host: "127.0.0.1", port: server.port, user: "postgres", database: "postgres",
                   max_connections: 2)
  end

  def wait(client, seconds) = client.get(Sequel.function(:pg_sleep, seconds))

  def usable?(client) = client.get(7) == 7

  def works(client)
    client.create_table(:looms) { String :name }
    client.transaction { %w[Jacquard Dobby].each { |name| client[:looms].insert(name:) } }
    client.transaction { client[:looms].insert(name: "hand") && raise(Sequel::Rollback) }
    client[:looms].order(:name).select_map(:name)
  end
end
