# frozen_string_literal: true

# Stands in for the gem of that name, which Debian does not have.
class Object
  # Gives a constant another value while the block runs.
  def stub_const(name, value)
    before = const_get(name)
    replace_const(name, value)
    yield
  ensure
    replace_const(name, before)
  end

  def replace_const(name, value)
    remove_const(name)
    const_set(name, value)
  end
end
