# frozen_string_literal: true

# Programs as a library's user writes them, in a Ruby of their own: the library and a scheduler, no more.
module Libraries
  # The exit status of a program whose library isn't there.
  MISSING = 2

  # What the program prints. Skips the example if the library is not installed for this Ruby.
  def output_with(library, program, env = {})
    output, errors, status = run_ruby(<<~RUBY, env:)
      begin
        require "#{library}"
      rescue LoadError
        exit #{MISSING}
      end
      require "heddle"
      #{program}
    RUBY
    skip "#{library} is not installed for this Ruby" if status.exitstatus == MISSING
    expect([errors, status.success?]).to eq ["", true]
    output
  end
end
