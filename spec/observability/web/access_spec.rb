# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  paths = ["/", "/page.js", "/stats.json", "/fibers.json", "/stalls.json", "/nowhere"]

  def status(path = "/stats.json", **, &) = web(path, app: web_app(**, &)).status

  def status_to(host, path = "/stats.json", &) = web(path, app: web_app(&), HTTP_HOST: host).status

  it "answers everybody in development and test" do
    environments = [{ "RACK_ENV" => "development" }, { "RAILS_ENV" => "test" },
                    { "APP_ENV" => "test", "RACK_ENV" => "" }]

    expect(environments.map { |variables| status(variables:) }).to all eq 200
  end

  [
    { "RACK_ENV" => "production" }, { "RAILS_ENV" => "staging" }, {},
    { "RACK_ENV" => "development", "RAILS_ENV" => "production" }, { "APP_ENV" => "production", "RACK_ENV" => "test" }
  ].each do |variables|
    it "refuses every path without a block where the environment is #{variables}" do
      expect(paths.map { |path| status(path, variables:) }).to all eq 403
    end
  end

  it "says in its refusal what to write, and which environment it has found" do
    answer = web("/", app: web_app(variables: { "RACK_ENV" => "production" }))

    expect(answer.body).to include("Heddle::Web.authorize { |env| ", "This process has RACK_ENV=production.")
  end

  it "answers in production where the block returns true" do
    expect(status(variables: { "RACK_ENV" => "production" }) { true }).to eq 200
  end

  it "refuses every path where the block returns false or nil, also in development" do
    expect(paths.map { |path| status(path, variables: { "RACK_ENV" => "development" }) { false } }).to all eq 403
    expect(status { nil }).to eq 403
  end

  it "passes the Rack environment to the block" do
    app = web_app { |env| env["HTTP_X_ROLE"] == "admin" }

    expect([web("/", app:).status, web("/", app:, "HTTP_X_ROLE" => "admin").status]).to eq [403, 200]
  end

  it "lets an error of the block reach the server" do
    expect { status { raise "no session" } }.to raise_error("no session")
  end

  it "lets a throw of the block reach its middleware" do
    expect(catch(:warden) { status { throw :warden, :login } }).to eq :login
  end

  %w[localhost localhost:9292 LOCALHOST app.localhost:3000 localhost. 127.0.0.1 127.0.0.1:80 127.1.2.3 [::1]
     [::1]:9292].each do |host|
    it "answers a request to #{host} without a block" do
      expect(status_to(host)).to eq 200
    end
  end

  it "answers a request without Host, which no browser sends, without a block" do
    expect(status_to(nil)).to eq 200
  end

  ["attacker.example", "attacker.example:9292", "localhost.attacker.example", "127.0.0.1.attacker.example",
   "notlocalhost", "attacker.example#localhost", "localhost:9292@attacker.example", "attacker.example\nlocalhost",
   "localhost\nattacker.example", "[::2]", "192.0.2.1", "", "\xFFlocalhost", "\xFF".b].each do |host|
    it "refuses every path of a request to #{host.inspect} without a block" do
      expect(paths.map { |path| status_to(host, path) }).to all eq 403
    end
  end

  it "says in its refusal of another host which rule would let the request in" do
    expect(web("/", app: web_app, "HTTP_HOST" => "dev.example:3000").body)
      .to include('Heddle::Web.authorize { |env| env["HTTP_HOST"] == "dev.example:3000" }')
  end

  it "leaves the check of the host to the block" do
    expect(status_to("attacker.example") { true }).to eq 200
  end

  it "refuses a trace that a page of another site asks for" do
    headers = [{ "HTTP_SEC_FETCH_SITE" => "cross-site" }, { "HTTP_SEC_FETCH_SITE" => "same-site" },
               { "HTTP_SEC_FETCH_SITE" => "none" }, { "HTTP_ORIGIN" => "http://evil.example" },
               { "HTTP_ORIGIN" => "http://localhost:81" }, { "HTTP_ORIGIN" => "null" }, { "HTTP_ORIGIN" => "::" },
               { "HTTP_ORIGIN" => "http://localhost", "HTTP_SEC_FETCH_SITE" => "cross-site" }, {}]

    expect(headers.map { |header| web("/trace", "POST", **header).status }).to all eq 403
  end

  it "says to a program without a browser's headers which one to send" do
    expect(web("/trace", "POST").body).to include('"Sec-Fetch-Site: same-origin"')
  end

  it "is refused in its own Ruby without a block, and answers after Heddle::Web.authorize" do
    printed, errors, = run_ruby(<<~RUBY, env: { "RACK_ENV" => "production", "RAILS_ENV" => nil, "APP_ENV" => nil })
      require "heddle/web"
      request = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/" }
      p Heddle::Web.call(request).first
      Heddle::Web.authorize { |env| env["PATH_INFO"] == "/" }
      p Heddle::Web.call(request).first, Heddle::Web.call(request.merge("PATH_INFO" => "/stats.json")).first
    RUBY

    expect([errors, printed]).to eq ["", "403\n200\n403\n"]
  end

  it "needs a block for Heddle::Web.authorize" do
    expect { described_class.authorize }.to raise_error(ArgumentError, "Heddle::Web.authorize needs a block")
  end
end
