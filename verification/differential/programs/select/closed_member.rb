# frozen_string_literal: true

# IO.select of a closed IO raises IOError

reader, _writer = IO.pipe
reader.close
say attempt { IO.select([reader], nil, nil, 0.01) }, attempt { IO.select(nil, [reader]) }
