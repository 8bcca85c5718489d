# frozen_string_literal: true

require_relative "async"

# The 2021 article's technique; see article_technique.rb.
class ArticleContestant < AsyncContestant
  def initialize(name, title, seconds:)
    super(name, title)
    @seconds = seconds
  end

  def prepare
    super
    require_relative "article_technique"
    Article.install(@seconds)
  end

  # Async runs as long as it has tasks, and does not count a fiber that was pushed. So a task waits for the fiber's end.
  def compute
    done = Queue.new
    Fiber.schedule { done.pop }
    cpu_bound = Article::YieldingFiber.new(Fiber.scheduler) do
      yield
      done.close
    end
    Fiber.scheduler.push(cpu_bound)
  end
end
