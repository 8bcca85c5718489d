# frozen_string_literal: true

module Ecosystem
  # The commands of {Servers}: each method returns what starts a server in this folder, on this port.
  module Commands
    RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    private

    # A directory with an empty database, made once and copied for each server.
    def template(name, folder)
      @lock.synchronize do
        @templates[name] ||= Dir.mktmpdir("heddle-ecosystem").tap do |made|
          FileUtils.chown(identity[:uid], identity[:gid], made)
          system({ "HOME" => made }, *yield(File.join(made, "data")), %i[out err] => File::NULL, chdir: made,
                                                                      exception: true, **identity)
        end
      end
      data = File.join(folder, "data")
      system("cp", "-a", File.join(@templates[name], "data"), data, exception: true)
      data
    end

    def postgres(folder, port)
      data = template(:postgres, folder) do |made|
        [find("initdb"), "-D", made, "-A", "trust", "-U", "postgres", "--no-sync"]
      end
      [find("postgres"), "-D", data, "-p", port.to_s, "-k", folder, "-F",
       "-c", "listen_addresses=127.0.0.1", "-c", "lc_messages=C"]
    end

    def mariadb(folder, port)
      data = template(:mariadb, folder) do |made|
        [find("mariadb-install-db"), "--no-defaults", "--datadir=#{made}", "--auth-root-authentication-method=normal",
         "--skip-test-db"]
      end
      [find("mariadbd"), "--no-defaults", "--datadir=#{data}", "--port=#{port}", "--bind-address=127.0.0.1",
       "--socket=#{folder}/socket", "--innodb-flush-log-at-trx-commit=0", "--pid-file=#{folder}/pid"]
    end

    def redis(_folder, port) = [find("redis-server"), "--port", port.to_s, "--save", ""]

    def memcached(_folder, port) = [find("memcached"), "-p", port.to_s, "-l", "127.0.0.1", "-U", "0"]

    # All of its ports are free ones, and its names are of this folder.
    def rabbitmq(folder, port)
      epmd_port = free_port
      settings = { "RABBITMQ_NODE_PORT" => port, "RABBITMQ_DIST_PORT" => free_port, "ERL_EPMD_PORT" => epmd_port,
                   "RABBITMQ_NODENAME" => "heddle#{port}@localhost", "RABBITMQ_MNESIA_BASE" => "#{folder}/data",
                   "RABBITMQ_LOG_BASE" => "#{folder}/logs", "RABBITMQ_NODE_IP_ADDRESS" => "127.0.0.1",
                   "RABBITMQ_PID_FILE" => "#{folder}/pid", "RABBITMQ_ENABLED_PLUGINS_FILE" => "#{folder}/plugins",
                   "RABBITMQ_CONFIG_FILE" => "#{folder}/none", "RABBITMQ_ADVANCED_CONFIG_FILE" => "#{folder}/none" }
      # Debian's command would change the user itself. Erlang's name server is started here, because it would outlive
      # RabbitMQ otherwise.
      ["env", *settings.map { |name, value| "#{name}=#{value}" }, "sh", "-c",
       "epmd -port #{epmd_port} & until epmd -port #{epmd_port} -names; do sleep 0.05; done; sh #{RABBITMQ}"]
    end
  end
end
