# frozen_string_literal: true

# Lines of a Logger that tasks share are whole

require "logger"
logger = Logger.new("log", progname: "p")
Array.new(5) { |number| task { 20.times { logger.info("message of #{number}") && sleep(0) } } }.each(&:join)
logger.close
say File.readlines("log").grep(/INFO -- p: message of \d$/).size
