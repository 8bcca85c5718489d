# frozen_string_literal: true

module Heddle
  module Traces
    # Where a trace is written.
    class Output
      COMPRESSED = ".gz"
      private_constant :COMPRESSED

      # @return [String, nil]
      attr_reader :path

      # @param target [String, #to_path, #write]
      # @param method [String] the public method, for the message
      # @raise [TypeError, SystemCallError]
      def initialize(target, method)
        @path = path_of(target)
        unless @path || target.respond_to?(:write)
          raise TypeError, "#{method}: #{target.inspect} is neither a path nor an object with a method write"
        end

        require "zlib" if compressed? && !defined?(Zlib)
        # Nothing is buffered in Ruby, where a forked child would write it a second time.
        @io = @path ? File.new(@path, "wb").tap { |file| file.sync = true } : target
      end

      # Calls the block with an object that has a method `write`, and completes the file.
      def open
        return yield @io unless compressed?

        compressor = Zlib::GzipWriter.new(@io)
        begin
          yield compressor
          compressor.finish
        ensure
          discard(compressor)
        end
      ensure
        close
      end

      # Closes the file, if this has opened it.
      def close
        @io.close if @path
      end

      private

      def path_of(target)
        return File.path(target) if target.is_a?(String)

        writes = target.respond_to?(:write) && !(defined?(Pathname) && target.is_a?(Pathname))
        File.path(target) if !writes && target.respond_to?(:to_path)
      end

      def compressed? = @path&.end_with?(COMPRESSED)

      # After an error, which is raised already, it would warn that it was not closed.
      def discard(compressor)
        compressor.close unless compressor.closed?
      rescue SystemCallError, IOError, Zlib::Error
        nil
      end
    end
    private_constant :Output
  end
end
