// What the examples that learn from text share: options, and the text.

#ifndef TROUPE_EXAMPLES_TEXT_CORPUS_H_
#define TROUPE_EXAMPLES_TEXT_CORPUS_H_

#include <troupe/troupe.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace corpus {

[[noreturn]] inline void Die(const absl::Status& status) {
  std::cerr << status << "\n";
  std::exit(1);
}

/// The value, or the end of the program.
template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}
inline void OrDie(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

struct Options {
  int64_t steps;
  int64_t batch;
  int threads = 0;
  int64_t seed = 1;
  std::vector<std::string> texts;  ///< Files, read one after the other.
};

/// Reads `--name value` and `--name=value`; `options` holds the defaults.
inline Options ParseOptions(int argc, char** argv, Options options) {
  auto usage = [&](const std::string& what) {
    std::cerr << what << "\nusage: " << argv[0]
              << " [--steps N] [--batch N] [--threads N] [--seed N] [--text FILE]...\n";
    std::exit(2);
  };
  bool default_texts = true;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      usage("option " + name + " needs a value");
    }
    if (name == "--text") {
      if (default_texts) options.texts.clear();
      default_texts = false;
      options.texts.push_back(value);
      continue;
    }
    char* end = nullptr;
    const int64_t number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || number < 0)
      usage("option " + name + ": no number: " + value);
    if (name == "--steps") {
      options.steps = number;
    } else if (name == "--batch" && number > 0 && number <= 100000) {
      options.batch = number;
    } else if (name == "--threads" && number <= 4096) {
      options.threads = static_cast<int>(number);
    } else if (name == "--seed") {
      options.seed = number;
    } else {
      usage("unknown or impossible option " + name + " " + value);
    }
  }
  return options;
}

/// Licences, which every Debian has: English of a kind, and free.
inline std::vector<std::string> Licences() {
  std::vector<std::string> files;
  for (const char* name :
       {"Apache-2.0", "Artistic", "GFDL-1.3", "MPL-2.0", "LGPL-2.1", "GPL-2", "GPL-3"}) {
    const std::string file = std::string("/usr/share/common-licenses/") + name;
    if (std::ifstream(file)) files.push_back(file);  // Older systems have fewer.
  }
  return files;
}

/// All of the files' characters, runs of blanks and line ends as one blank.
inline std::string ReadText(const std::vector<std::string>& files) {
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

/// The words of a text in lower case.
inline std::vector<std::string> Words(const std::string& text) {
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

/// Different things, numbered from the most frequent to the rarest.
template <typename T>
struct Vocabulary {
  std::vector<T> entries;
  std::vector<int64_t> counts;
  std::map<T, int32_t> ids;

  /// Of what occurs at least `min_count` times in `sequence`.
  template <typename Sequence>
  explicit Vocabulary(const Sequence& sequence, int64_t min_count = 1) {
    std::map<T, int64_t> count;
    for (const T& item : sequence) ++count[item];
    std::vector<std::pair<int64_t, T>> sorted;
    for (const auto& [item, n] : count) {
      if (n >= min_count) sorted.emplace_back(-n, item);
    }
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [n, item] : sorted) {
      ids[item] = static_cast<int32_t>(entries.size());
      entries.push_back(item);
      counts.push_back(-n);
    }
  }
  int64_t size() const { return static_cast<int64_t>(entries.size()); }
};

}  // namespace corpus

#endif  // TROUPE_EXAMPLES_TEXT_CORPUS_H_
