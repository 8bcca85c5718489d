# frozen_string_literal: true

desc "Build the guides and the API reference into one static site, in tmp/site (SITE=folder)"
task :docs do
  begin
    require_relative "../website/build"
  rescue LoadError => e
    abort "#{e.message}: rake docs needs yard, kramdown, kramdown-parser-gfm and rouge. Debian's packages are yard, " \
          "ruby-kramdown, ruby-kramdown-parser-gfm and ruby-rouge; with Bundler, BUNDLE_GEMFILE=gemfiles/docs.gemfile."
  end
  folder = File.expand_path(ENV.fetch("SITE", "tmp/site"))
  pages = Website::Build.new(folder).run
  puts "#{pages} pages in #{folder}; begin at #{File.join(folder, "index.html")}"
end
