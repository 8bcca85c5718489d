# frozen_string_literal: true

require "heddle/web"
require "json"
require "zlib"

RSpec.describe Heddle::Web do
  include WebRequests

  same_origin = { "HTTP_SEC_FETCH_SITE" => "same-origin" }

  # A trace that takes no five seconds.
  def traces(&)
    allow(Heddle).to receive(:trace, &)
  end

  it "records five seconds, and sends them as a file" do
    traces { |path, **options| File.write(path, "#{File.extname(path)}, #{options[:seconds]} s") }
    answer = web("/trace", "POST", **same_origin)

    expect([answer.status, answer.body]).to eq [200, ".gz, 5 s"]
    expect(answer.headers).to include(
      "content-type" => "application/gzip", "content-length" => answer.body.bytesize.to_s,
      "content-disposition" => /\Aattachment; filename="heddle-#{Process.pid}-\d{8}-\d{6}\.trace\.json\.gz"\z/
    )
  end

  it "sends a trace that viewers read" do
    allow(Heddle).to(receive(:trace).and_wrap_original { |trace, path, **| trace.call(path, seconds: 0.01) })
    body = Heddle.run { web("/trace", "POST", **same_origin).body }

    expect(JSON.parse(Zlib.gunzip(body))).to include("traceEvents")
  end

  it "records for pages of its own host, as far as the browser tells" do
    traces { nil }
    hosts = { "http://app.localhost" => "app.localhost", "https://APP.localhost" => "app.localhost",
              "http://app.localhost:3000" => "app.localhost:3000", "http://[::1]:9292" => "[::1]:9292" }
    statuses = hosts.map { |origin, host| web("/trace", "POST", "HTTP_ORIGIN" => origin, "HTTP_HOST" => host).status }

    expect(statuses).to all eq 200
  end

  it "leaves no file behind" do
    paths = []
    traces { |path, **| paths << path }
    web("/trace", "POST", **same_origin)
    traces { |path, **| raise Heddle::Error, (paths << path).last }
    web("/trace", "POST", **same_origin)

    expect(paths.size).to eq 2
    expect(paths.any? { |path| File.exist?(path) }).to be false
  end

  it "answers with 409 and the reason while another trace is recorded" do
    traces { raise Heddle::Error, "Heddle.trace: a trace is being recorded" }
    answer = web("/trace", "POST", **same_origin)

    expect([answer.status, answer.body]).to eq [409, "Heddle.trace: a trace is being recorded\n"]
  end

  it "records nothing where the request is refused" do
    traces { raise "recorded" }

    expect(web("/trace", "POST", app: web_app { false }, **same_origin).status).to eq 403
    expect(web("/trace", "POST").status).to eq 403
  end
end
