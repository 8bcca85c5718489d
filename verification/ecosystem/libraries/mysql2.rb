# frozen_string_literal: true

Ecosystem.library "mysql2", server: :mariadb do
  def connect = Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "root")

  def wait(client, seconds) = client.query("SELECT SLEEP(#{seconds})").to_a

  def usable?(client) = client.query("SELECT 7 AS seven").to_a == [{ "seven" => 7 }]

  def works(client)
    client.query("CREATE DATABASE weaving")
    client.query("USE weaving")
    client.query("CREATE TABLE looms (name varchar(20))")
    %w[Jacquard Dobby].each { |name| client.query("INSERT INTO looms VALUES ('#{name}')") }
    client.query("SELECT name FROM looms ORDER BY name", stream: true, cache_rows: false).map { |row| row["name"] }
  end
end

Ecosystem.library "mysql2, prepared statements", requires: "mysql2", version: "mysql2", server: :mariadb,
                                                 remark: "block the thread: `require \"heddle/offload/mysql2\"`",
                                                 weak: ["waits at once", "10 ms sleeper", "timeout", "kill",
                                                        "server dies"] do
  def connect = Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "root")

  def wait(client, seconds) = client.prepare("SELECT SLEEP(?)").execute(seconds).to_a

  def usable?(client) = client.prepare("SELECT ? AS seven").execute(7).first["seven"] == 7
end

Ecosystem.offloaded "mysql2, prepared statements", "mysql2"
