# frozen_string_literal: true

module Heddle
  module Metrics # :nodoc:
    # One number, or one histogram, of {Scheduler#stats} or of each name, as monitoring systems describe it.
    #
    # @api private
    # @!attribute [r] path
    #   @return [Array<Symbol>] its keys in {Scheduler#stats}; `:name` and a key for what there is of each name
    # @!attribute [r] kind
    #   @return [:counter, :gauge, :histogram]
    # @!attribute [r] description
    #   @return [String]
    Metric = Data.define(:path, :kind, :description) do
      # @return [Boolean] whether there is a value of each name
      def by_name? = path.first == :name

      # @return [Boolean] whether the value is in seconds, as all of each name are
      def seconds? = by_name? || path == %i[elapsed] || path.last.end_with?("duration")

      # @param stats [Hash, nil] what {Scheduler#stats} returned
      # @return [Integer, Float, Histogram, nil]
      def of(stats) = stats&.dig(*path)

      # @param names [Array<NameTotal>]
      # @return [Array<Array(Hash{Symbol => String}, (Float, Histogram))>] labels, and the value that has them
      def of_names(names)
        names.flat_map do |total|
          labels = { name: total.name }
          case path.last
          when :age then [[labels, total.ages]]
          when :waited then total.waited.map { |kind, seconds| [{ **labels, kind: kind.to_s }, seconds] }
          else [[labels, total.public_send(path.last)]]
          end
        end
      end
    end

    # All numbers of {Scheduler#stats} but those that follow from others; and what is counted by name.
    #
    # @api private
    CATALOGUE = {
      counter: {
        %i[elapsed] => "Seconds that the scheduler has been open",
        %i[busy_duration] => "Seconds in which the scheduler's thread did not wait in the kernel",
        %i[fibers spawned_count] => "Fibers that the scheduler has made",
        %i[fibers ended_count] => "Fibers that have ended",
        %i[fibers failed_count] => "Fibers that an error has ended",
        %i[run_queue switches_count] => "Time slices that have started",
        %i[run_queue budget_forced_yield_count] => "Yields of fibers whose operations never had to wait",
        %i[run_queue preemptions_count] => "Preemptions of computing fibers",
        %i[kernel polls_count] => "Polls of timers and the kernel",
        %i[kernel park_count] => "Polls that waited, as no fiber was runnable",
        %i[kernel busy_poll_count] => "Those of them that ended before the thread slept",
        %i[kernel park_duration] => "Seconds that these polls waited",
        %i[operations tried_count] => "Reads and writes that were tried at once",
        %i[operations ready_count] => "Waits for a descriptor's readiness",
        %i[operations read_count] => "Reads by the backend",
        %i[operations write_count] => "Writes by the backend",
        %i[operations receive_count] => "Receives by the backend",
        %i[operations send_count] => "Sends by the backend",
        %i[operations job_count] => "Jobs of native threads",
        %i[operations completed_count] => "Operations that have completed",
        %i[operations batches_count] => "Polls that have found completed operations",
        %i[timers expired_count] => "Timers that have expired",
        %i[gc count] => "Garbage collections of the process",
        %i[gc duration] => "Seconds that garbage collections of the process took",
        %i[name ran] => "Seconds that fibers with a name ran",
        %i[name runnable] => "Seconds that fibers with a name waited for their turn",
        %i[name waited] => "Seconds that fibers with a name waited for events, by kind"
      },
      gauge: {
        %i[fibers running] => "Fibers that run, or have resumed a fiber",
        %i[fibers runnable] => "Fibers that wait for their turn",
        %i[fibers waiting] => "Fibers that wait for an event",
        %i[run_queue depth] => "Entries of the run queue",
        %i[operations pending] => "Operations under way",
        %i[timers pending] => "Timers that have not expired",
        %i[workers files threads] => "Native threads for files",
        %i[workers files queue_depth] => "Jobs that wait for one of them",
        %i[workers names threads] => "Native threads for host names",
        %i[workers names queue_depth] => "Jobs that wait for one of them"
      },
      histogram: {
        %i[run_queue scheduled_duration] => "Seconds from a fiber's wake-up until it runs",
        %i[run_queue slice_duration] => "Seconds that fibers run at a time",
        %i[name age] => "Seconds that fibers had a name"
      }
    }.flat_map { |kind, metrics| metrics.map { |path, text| Metric.new(path:, kind:, description: text) } }.freeze
    private_constant :CATALOGUE, :Metric
  end
end
