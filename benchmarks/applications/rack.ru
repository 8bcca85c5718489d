# frozen_string_literal: true

# A Rack application: a fast page, one that computes for about 35 ms, and one that waits for 0.3 s.
TEXT = { "content-type" => "text/plain" }.freeze

run(lambda do |env|
  case env["PATH_INFO"]
  when "/cpu"
    turns = 0
    turns += 1 while turns < 1_000_000
    [200, TEXT.dup, ["computed\n"]]
  when "/slow"
    sleep 0.3
    [200, TEXT.dup, ["slow\n"]]
  else [200, TEXT.dup, ["hello\n"]]
  end
end)
