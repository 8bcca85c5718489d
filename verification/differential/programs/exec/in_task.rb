# frozen_string_literal: true

# exec in a task replaces the whole program

task { exec("sh", "-c", "echo from a task; exit 4") }
sleep
say :never
