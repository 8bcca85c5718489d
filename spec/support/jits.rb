# frozen_string_literal: true

# Ruby's just-in-time compilers. Examples that need one have a process of their own, which is started with its options.
module Jits
  # Options, by constant under RubyVM, with which a method is compiled when it is called for the first or second time.
  EAGER = {
    "YJIT" => %w[--yjit --yjit-call-threshold=1],
    "ZJIT" => %w[--zjit --zjit-call-threshold=2 --zjit-num-profiles=1]
  }.freeze

  module_function

  def names = EAGER.keys

  # @return [String] the option that limits the memory for code to so many MiB
  def memory(name, size) = { "YJIT" => "--yjit-exec-mem-size", "ZJIT" => "--zjit-mem-size" }.fetch(name) + "=#{size}"

  # @return [String, nil] why the compiler cannot be had
  def refusal(name)
    return if RubyVM.const_defined?(name)

    "Ruby #{RUBY_VERSION} (#{RbConfig.ruby}) was built without #{name}"
  end
end
