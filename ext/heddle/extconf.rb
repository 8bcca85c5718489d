# frozen_string_literal: true

require "mkmf"
require "rb_sys/mkmf"

target = RbConfig::CONFIG["target_os"]
abort "heddle needs Linux, for epoll, io_uring and its tickers, not #{target}" unless target.include?("linux")

create_rust_makefile("heddle/heddle")
