-- Makes wrk send the request in HEDDLE_REQUEST unchanged, and print its figures as one line of JSON, which
-- workloads/support/load.rb reads. wrk counts in microseconds.
local request_text = os.getenv("HEDDLE_REQUEST")
local verified = false

-- wrk parses the first request it gets here, and never sends it. The request for an echo server need not be HTTP.
function request()
  if verified then
    return request_text
  end
  verified = true
  return "GET / HTTP/1.1\r\n\r\n"
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"client":"wrk","operations":%d,"errors":%d,"seconds":%.6f,"p50_ms":%.3f,"p90_ms":%.3f,"p99_ms":%.3f,"max_ms":%.3f}\n',
    summary.requests, failures, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(90) / 1000,
    latency:percentile(99) / 1000, latency.max / 1000))
end
