# frozen_string_literal: true

# A UNIX server's path and abstract name

UNIXServer.open("socket") do |server|
  serving = task { server.accept.then { |client| client.write(client.gets.upcase) && client.close } }
  say UNIXSocket.open("socket") { |socket| socket.write("by path\n") && socket.read }, serving.join.alive?
end
say File.socket?("socket"), attempt { UNIXSocket.new("socket") }, attempt { UNIXServer.new("socket") }
