# frozen_string_literal: true

Ecosystem.library "stackprof" do
  def works(_client)
    profile = StackProf.run(mode: :cpu, interval: 1000, raw: true) do
      finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.2
      weave until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > finish
      sleep(0.01)
    end
    [profile[:samples] > 20, profile[:frames].any? { |_, frame| frame[:name].end_with?("weave") }]
  end

  def weave = 1000.times.sum
end
