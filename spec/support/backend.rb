# frozen_string_literal: true

# Which backend this run of the specs is for.
module Backend
  # The name as in HEDDLE_BACKEND, which a scheduler without a `backend:` of its own follows.
  def backend
    ENV.fetch("HEDDLE_BACKEND", "auto")
  end
end
