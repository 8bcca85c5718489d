# frozen_string_literal: true

RSpec.describe "Puma with `heddle slow:`" do
  include PumaServers

  app = <<~RUBY
    run(lambda do |env|
      60.times { sleep 0.001 } if env["PATH_INFO"].start_with?("/slow") # at least
      [200, { "content-type" => "text/plain" }, ["done"]]
    end)
  RUBY

  it "logs one line for each slow request, with what it has spent its time on" do
    log = with_server(app, "heddle slow: 0.05") do |server|
      server.get("/slow/7")
      server.wait_for_log(/slow request/)
      server.signal(:TERM)
      server.wait
      server.log
    end

    expect(log.lines.grep(/slow request/)).to match [
      %r{heddle: slow request "GET /slow/7" took \d+\.\d+ s: ran .* of its .*, waited .* \(.*sleep .*\)}
    ]
  end

  it "logs no other request" do
    log = with_server(app, "heddle slow: 30") do |server|
      server.get("/slow/7")
      server.signal(:TERM)
      server.wait
      server.log
    end

    expect(log).not_to include("slow request")
  end

  it "refuses a limit that is no number of seconds" do
    errors = printed(<<~RUBY, library: "puma")
      require "heddle/puma"
      ["1", -1].each do |slow|
        Heddle::PumaSupport::Settings.new(slow:)
      rescue TypeError, ArgumentError => e
        puts "\#{e.class}: \#{e.message}"
      end
    RUBY

    expect(errors.lines).to match [/\ATypeError: heddle slow: seconds must be an/,
                                   /\AArgumentError: .*finite and not negative/]
  end
end
