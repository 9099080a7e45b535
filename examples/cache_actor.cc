// An actor of the application inside of a graph: a cache in front of a slow store.
//
//     build/release/bin/cache_actor
//
// The graph compares words by the angle between their vectors. Where the vectors come from is not
// the graph's concern: it asks the actor "vectors", which keeps those that were used last and reads
// the others from a store. The same graph runs with any other actor of that name.

#include <cstdio>
#include <list>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "api/actors.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "examples/shared/options.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

constexpr int64_t kSize = 16;
constexpr size_t kCapacity = 100;

/// The store: a vector for every word, some way off.
std::vector<float> Read(const std::string& word) {
  // Stands for the way to the store and back, which the cache spares.
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(word)));
  std::normal_distribution<float> normal;
  std::vector<float> vector(kSize);
  for (float& x : vector) x = normal(random);
  return vector;
}

struct CacheState {
  std::list<std::pair<std::string, std::vector<float>>> used;  ///< Last used first.
  std::map<std::string, decltype(used)::iterator> by_word;
  int64_t asked = 0, read = 0;

  const std::vector<float>& Find(const std::string& word) {
    ++asked;
    auto known = by_word.find(word);
    if (known != by_word.end()) {
      used.splice(used.begin(), used, known->second);
      return used.front().second;
    }
    ++read;
    used.emplace_front(word, Read(word));
    by_word[word] = used.begin();
    if (used.size() > kCapacity) {
      by_word.erase(used.back().first);
      used.pop_back();
    }
    return used.front().second;
  }
};

/// Asked by the graph with words, it answers their vectors, one a row. Asked by the program with 0,
/// it answers the part of words, in percent, for which it did not need the store.
caf::behavior Cache(caf::stateful_actor<CacheState>* self) {
  return {
      [self](ask_atom, const std::vector<Tensor>& in) -> caf::result<std::vector<Tensor>> {
        const auto words = in.at(0).values<std::string>();
        if (!words.ok()) return ToCafError(words.status());
        std::vector<float> rows;
        for (const std::string& word : *words) {
          const std::vector<float>& vector = self->state.Find(word);
          rows.insert(rows.end(), vector.begin(), vector.end());
        }
        const int64_t count = static_cast<int64_t>(words->size());
        return std::vector<Tensor>{Tensor::FromValues<float>(rows, {count, kSize}).value()};
      },
      [self](int) {
        const CacheState& state = self->state;
        return 100.0 * static_cast<double>(state.asked - state.read) /
               static_cast<double>(state.asked);
      },
  };
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 500;
  CommandLine line("cache_actor", "An actor of the application inside of a graph.");
  AddValue(&line, "--steps N", &steps, "Batches of words to compare")
      ->check(WholeNumber(1, 1000000));
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;

  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));  // Idle threads wait; they do not poll.
  caf::actor_system system(config);
  const caf::actor cache = system.spawn(Cache);
  const absl::StatusOr<PublishedActor> published = PublishActor("vectors", cache);
  OrDie(published.status());

  const Scope s = Scope::NewRoot();
  const Output words = ops::Placeholder(s, ElementType::kString, {.shape = PartialShape({-1})});
  const Output vectors =
      ops::AskActor(s, {words}, "vectors", {ElementType::kFloat},
                    {.timeout_ms = 5000, .shapes = {PartialShape({-1, kSize})}})[0];
  const Output unit = ops::Mul(
      s, vectors, ops::Rsqrt(s, ops::Sum(s, ops::Square(s, vectors), {1}, {.keep_dims = true})));
  const Output cosines = ops::MatMul(s, unit, unit, {.transpose_b = true});
  OrDie(s.status());

  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(s.graph());
  OrDie(session.status());
  // As in texts, a few words are frequent and most are rare.
  std::mt19937 random(1);
  std::exponential_distribution<double> rank(0.02);
  float self_similarity = 0;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<std::string> batch;
    for (int i = 0; i < 8; ++i)
      batch.push_back("word" + std::to_string(static_cast<int>(rank(random))));
    const auto result = (*session)->Run({{words, Tensor::Vector<std::string>(batch)}}, {cosines});
    OrDie(result.status());
    self_similarity = (*result)[0].data<float>().value()[0];
  }
  std::printf("a word is %.3f like itself\n", self_similarity);
  caf::scoped_actor self(system);
  self->request(cache, caf::infinite, 0)
      .receive([](double percent) { std::printf("from the cache: %.1f %%\n", percent); },
               [](const caf::error&) { std::exit(1); });
}
