// What the examples that learn from text share: options, and the text.

#ifndef TROUPE_EXAMPLES_SHARED_TEXT_CORPUS_H_
#define TROUPE_EXAMPLES_SHARED_TEXT_CORPUS_H_

#include <troupe/troupe.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "examples/shared/options.h"

namespace corpus {

using examples::Die;
using examples::OrDie;

struct Options : examples::Options {
  std::vector<std::string> texts;  ///< Files, read one after the other.
};

/// Reads the command line; licenses, which every Debian has, are the text unless others are named.
/// `add_more` adds options that one example has besides.
Options ParseOptions(int argc, char** argv, const std::string& description,
                     const examples::Options& defaults,
                     const std::function<void(troupe::CommandLine& line)>& add_more = {});

/// All of the files' characters, runs of blanks and line ends as one blank.
std::string ReadText(const std::vector<std::string>& files);

/// The words of a text in lower case.
std::vector<std::string> Words(const std::string& text);

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

/// Sentences of several texts, words as numbers. 0 stands for words that occur only once.
struct Sentences {
  std::vector<std::vector<int32_t>> words;
  std::vector<int32_t> labels;  ///< The text that a sentence is from.
  int64_t num_words = 0;
};

/// Those of `min_words` to `max_words` words.
Sentences ReadSentences(const std::vector<std::string>& texts, size_t min_words, size_t max_words);

}  // namespace corpus

#endif  // TROUPE_EXAMPLES_SHARED_TEXT_CORPUS_H_
