# frozen_string_literal: true

require "tempfile"

module Heddle
  class Web
    # Records a trace of this process, and sends it as a file.
    #
    # @api private
    class TraceDownload
      SECONDS = 5
      CHUNK = 64 * 1024
      TYPE = "application/gzip"
      private_constant :SECONDS, :CHUNK, :TYPE

      # @return [Array] 409 if a trace is being recorded already
      def self.answer
        name = "heddle-#{Process.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}.trace.json.gz"
        file = record
        Answers.download(new(file), name:, type: TYPE, size: file.size)
      rescue Error => e
        Answers.text(409, Text.clean(e.message))
      end

      # @return [File] open, and deleted, so that it takes no space when it is closed
      def self.record
        temporary = Tempfile.create(["heddle", ".json.gz"])
        temporary.close
        Heddle.trace(temporary.path, seconds: SECONDS)
        File.open(temporary.path, "rb")
      ensure
        File.unlink(temporary.path) if temporary
      end
      private_class_method :record

      # @param file [File]
      def initialize(file)
        @file = file
      end

      # Rack's server calls this to send the file.
      #
      # @yieldparam chunk [String]
      def each
        while (chunk = @file.read(CHUNK))
          yield chunk
        end
      end

      # Rack's server calls this at the end.
      def close = @file.close
    end
    private_constant :TraceDownload
  end
end
