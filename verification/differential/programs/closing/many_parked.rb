# frozen_string_literal: true

# A close is quick beside a thousand tasks that wait for other pipes

waiting = Array.new(300) { IO.pipe }
tasks = waiting.map { |reader, _writer| task { reader.read } }
settle
100.times { IO.pipe.each(&:close) }
waiting.map(&:last).each { |writer| writer.write("done").then { writer.close } }
say tasks.map(&:value).tally
