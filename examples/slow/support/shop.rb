# frozen_string_literal: true

require "heddle/web"
require "net/http"
require "puma"
require "puma/configuration"
require "puma/launcher"

# A shop on Puma, with the page of Heddle::Web at /heddle, and clients that request its paths again and again. The
# clients are a process of their own, so that their work does not delay the shop.
module Shop
  PAGE = "/heddle"
  # The processes beside this one, by the pipe that each reads until this process ends.
  @beside = {}
  # Seconds between two requests of a customer.
  PAUSE = 0.1
  private_constant :PAGE, :PAUSE

  module_function

  # Opens the shop, until Ctrl-C. The program's first argument is the port.
  #
  # @param customers [Hash{String => Integer}] how many of them ask for which path; a `#` in it stands for a number
  # @yieldparam path [String] of a request
  # @yieldreturn [String] the answer
  def open(customers, &)
    port, announced = IO.pipe
    beside { send_in(customers, port) }
    launch(announced, &)
  ensure
    # The last one has inherited the pipes of those before.
    @beside.reverse_each do |pipe, pid|
      pipe.close
      Process.wait(pid)
    end
  end

  # Runs the block in a process of its own, which ends with this one, however that ends.
  def beside
    read, write = IO.pipe
    @beside[write] = fork do
      trap("INT", "IGNORE")
      write.close
      Thread.new do
        read.read
        exit!(true)
      end
      yield
    end
    read.close
  end

  def launch(announced, &block)
    configuration = Puma::Configuration.new do |config|
      config.plugin :heddle
      config.heddle stats: :detailed, stall_after: 0.1
      config.bind "tcp://127.0.0.1:#{ARGV.fetch(0, 9292)}"
      config.environment "development"
      config.force_shutdown_after :immediately
      config.app application(&block)
    end
    events = Puma::Events.new
    launcher = Puma::Launcher.new(configuration, events:, log_writer: Puma::LogWriter.null)
    events.register(:state) { |state| announce(launcher.connected_ports.first, announced) if state == :running }
    launcher.run
  end

  def announce(port, announced)
    puts "The page is at http://127.0.0.1:#{port}#{PAGE}. Ctrl-C ends the shop."
    $stdout.flush
    announced.puts(port)
    announced.flush
  end

  def application
    lambda do |env|
      path = env["PATH_INFO"]
      next [200, { "content-type" => "text/plain" }, [yield(path)]] unless path.start_with?(PAGE)

      Heddle::Web.call(env.merge("SCRIPT_NAME" => PAGE, "PATH_INFO" => path.delete_prefix(PAGE)))
    end
  end

  def send_in(customers, pipe)
    port = Integer(pipe.gets)
    customers.each { |path, count| count.times { |number| Thread.new { visit(port, path, number) } } }
    sleep
  end

  def visit(port, path, number)
    loop do
      number += 100
      Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path.sub("#", number.to_s)}"))
    rescue SystemCallError, IOError, Timeout::Error
      # The shop is closing.
    ensure
      sleep PAUSE
    end
  end
end
