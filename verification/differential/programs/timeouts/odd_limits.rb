# frozen_string_literal: true

# Timeout.timeout takes what a thread takes as a limit

[nil, 0, 0.0, 0.01, 1e-9, 1r / 100, 10**6, Float::INFINITY].each do |limit|
  say "#{limit.inspect} #{attempt do
    Timeout.timeout(limit) do
      limit && limit < 1 && limit.positive? ? sleep : :done
    end
  end}"
end
say attempt { Timeout.timeout("1") { :done } }[/\A\w+/]
