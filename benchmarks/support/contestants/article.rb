# frozen_string_literal: true

require_relative "async"

# The 2021 article's technique; see latency/article.rb.
class ArticleContestant < AsyncContestant
  def initialize(name, title, seconds:)
    super(name, title)
    @seconds = seconds
  end

  def prepare
    super
    require_relative "../../latency/article"
    Article.install(@seconds)
  end

  # Async runs as long as it has tasks, and knows nothing of what was pushed: a task waits for it.
  def compute
    done = Queue.new
    Fiber.schedule { done.pop }
    hog = Article::YieldingFiber.new(Fiber.scheduler) do
      yield
      done.close
    end
    Fiber.scheduler.push(hog)
  end
end
