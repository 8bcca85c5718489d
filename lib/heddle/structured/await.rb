# frozen_string_literal: true

module Heddle
  # A fiber waits for the end of others.
  class Await
    # @return [Task, nil] who ended first
    attr_reader :first
    # @return [Task, nil] the first that failed
    attr_reader :failed

    # @param owner [Task] who waits
    def initialize(scheduler, owner, tasks)
      @scheduler = scheduler
      @pending = tasks.to_h { |task| [task, true] }
      @waiter = Fiber.current
      @owner = owner
      @claimed = []
    end

    # @yieldreturn [Boolean] whether it has been waited for long enough
    def until
      ended, alive = @pending.keys.partition(&:ended?)
      take_note(ended)
      alive.each { |task| task.await(self) }
      @scheduler.block(self, nil) until yield(self)
      @settled = true
    ensure
      release
    end

    def all?
      @pending.empty?
    end

    # @return [Boolean] whether the task's error is raised in its parent by this
    def ended(task)
      ours = task.parent.equal?(@owner)
      if note(task)
        @claimed << task if ours && task.error
        @scheduler.unblock(self, @waiter)
      end
      ours
    end

    # Errors that are not raised here after all go to the parent.
    def hand_up_but(task)
      @claimed.each { |other| other.hand_up unless other.equal?(task) }
    end

    # Tells those that are left to end, and waits for it.
    def stop_rest
      return if all?

      @scheduler.__send__(:hold_back) do
        @pending.each_key(&:stop)
        Await.new(@scheduler, @owner, @pending.keys).until(&:all?)
      end
    end

    private

    def take_note(ended)
      # They count in the order in which they ended.
      ended.sort_by(&:rank).each { |task| note(task) }
      # An error that is on its way to this fiber is not to come twice.
      @claimed.concat(ended.select { |task| task.parent.equal?(@owner) && task.retract })
    end

    # What has failed meanwhile, and is not going to be raised here, goes to the parent after all.
    def release
      @pending.each_key { |task| task.forget(self) }
      hand_up_but(nil) unless @settled
    end

    def note(task)
      return unless @pending.delete(task)

      @first ||= task
      @failed ||= task if task.error
      true
    end
  end
  private_constant :Await
end
