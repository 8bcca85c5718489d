# frozen_string_literal: true

# Net::HTTP keeps a connection, posts and reads in chunks

require "net/http"
server = TCPServer.new("127.0.0.1", 0)
serving = task do
  client = server.accept
  3.times do |number|
    length = 0
    while (line = client.gets.chomp) && !line.empty?
      length = line[/\Acontent-length: (\d+)/i, 1].to_i if line.match?(/\Acontent-length/i)
    end
    body = client.read(length)
    client.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    [number.to_s, body].reject(&:empty?).each do |part|
      client.write("#{part.bytesize.to_s(16)}\r\n#{part}\r\n") && sleep(0.002)
    end
    client.write("0\r\n\r\n")
  end
  client.close
end
Net::HTTP.start("127.0.0.1", server.addr[1]) do |http|
  say http.get("/").body, http.post("/", "posted").body, http.get("/again").code
end
serving.join
