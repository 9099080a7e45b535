#include "examples/shared/text_corpus.h"

#include <cctype>
#include <fstream>
#include <iterator>

namespace corpus {

namespace {

/// Licenses, which every Debian has: English of a kind, and free.
std::vector<std::string> Licenses() {
  std::vector<std::string> files;
  for (const char* name :
       {"Apache-2.0", "Artistic", "GFDL-1.3", "MPL-2.0", "LGPL-2.1", "GPL-2", "GPL-3"}) {
    const std::string file = std::string("/usr/share/common-licenses/") + name;
    if (std::ifstream(file)) files.push_back(file);  // Older systems have fewer.
  }
  return files;
}

}  // namespace

Options ParseOptions(int argc, char** argv, const std::string& description,
                     const examples::Options& defaults,
                     const std::function<void(troupe::CommandLine& line)>& add_more) {
  Options options;
  static_cast<examples::Options&>(options) = defaults;
  examples::CommandLine line(argv, description, &options);
  troupe::AddList(&line, "--text FILE", &options.texts,
                  "A text to learn from; licenses of /usr/share/common-licenses if absent; may be "
                  "repeated");
  if (add_more) add_more(line);
  line.ReadOrExit(argc, argv);
  if (options.texts.empty()) options.texts = Licenses();
  return options;
}

std::string ReadText(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) Die(absl::NotFoundError("cannot read the text " + file + "; name one with --text"));
    for (std::istreambuf_iterator<char> c(in), end; c != end; ++c) {
      if (std::isspace(static_cast<unsigned char>(*c)) == 0) {
        text += *c;
      } else if (!text.empty() && text.back() != ' ') {
        text += ' ';
      }
    }
    text += ' ';
  }
  return text;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

Sentences ReadSentences(const std::vector<std::string>& texts, size_t min_words, size_t max_words) {
  Sentences result;
  std::vector<std::vector<std::string>> sentences;
  std::vector<std::string> all;
  for (size_t file = 0; file < texts.size(); ++file) {
    const std::string text = ReadText({texts[file]});
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find_first_of(".;:", begin), text.size());
      std::vector<std::string> words = Words(text.substr(begin, end - begin));
      if (words.size() < min_words || words.size() > max_words) continue;
      all.insert(all.end(), words.begin(), words.end());
      sentences.push_back(std::move(words));
      result.labels.push_back(static_cast<int32_t>(file));
    }
  }
  const Vocabulary<std::string> vocabulary(all, /*min_count=*/2);
  result.num_words = vocabulary.size() + 1;
  for (const std::vector<std::string>& sentence : sentences) {
    std::vector<int32_t>& ids = result.words.emplace_back();
    for (const std::string& word : sentence) {
      const auto it = vocabulary.ids.find(word);
      ids.push_back(it == vocabulary.ids.end() ? 0 : it->second + 1);
    }
  }
  return result;
}

}  // namespace corpus
