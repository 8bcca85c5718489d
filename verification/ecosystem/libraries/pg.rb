# frozen_string_literal: true

Ecosystem.library "pg", server: :postgres do
  def connect = PG.connect(host: "127.0.0.1", port: server.port, user: "postgres", dbname: "postgres")

  def wait(client, seconds) = client.exec("SELECT pg_sleep(#{seconds})")

  def usable?(client) = client.exec_params("SELECT $1::int", [7]).getvalue(0, 0) == "7"

  def works(client)
    client.exec("CREATE TEMP TABLE looms (name text)")
    client.prepare("add", "INSERT INTO looms VALUES ($1)")
    client.transaction { %w[Jacquard Dobby].each { |name| client.exec_prepared("add", [name]) } }
    client.copy_data("COPY looms FROM STDIN") { client.put_copy_data("hand\n") }
    client.exec("SELECT name FROM looms ORDER BY name").column_values(0)
  end
end
