# frozen_string_literal: true

# What two fibers use, each method on lines of its own.
class SharedState
  @@count = 0 # rubocop:disable Style/ClassVars -- it is what is found

  attr_reader :lock, :list, :table, :text
  attr_accessor :number

  def initialize
    @number = 0
    @lock = Mutex.new
    @list = []
    @table = {}
    @text = +""
  end

  def add_one
    @number += 1
  end

  def read
    @number.to_s
  end

  def add_one_with_lock
    @lock.synchronize do
      @number += 1
    end
  end

  def add_one_with_lock_in_a_line
    @lock.synchronize { @number += 1 }
  end

  def receive(queue)
    @number = queue.pop
  end

  def made
    @made ||= Object.new
  end

  def set = @number = 1

  def set_to_yielded
    @number = yield
  end

  # Its block leaves the method.
  def leave
    set_to_yielded { return }
  end

  # Another fiber finds what one has made, without the lock.
  def made_with_lock
    return @made if @made

    @lock.synchronize do
      @made ||= SharedState.new.list.push(1)
    end
  end

  def count_one
    @@count += 1 # rubocop:disable Style/ClassVars
  end

  def count_one_globally
    $heddle_races_spec = $heddle_races_spec.to_i + 1 # rubocop:disable Style/GlobalVars
  end
end
