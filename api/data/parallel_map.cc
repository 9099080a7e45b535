// A function that is called for several elements at once.
#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "api/data/stages.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

/// The activity pulls elements, in pieces, and has each piece mapped by a task of its own; the
/// stage gives the results of the first piece, or of any that is done. Credits are pieces: those
/// that are being mapped, and as many that are done.
class ParallelMapStage final : public Stage, public Activity {
 public:
  ParallelMapStage(const Place& place, ElementFunction function, DatasetMapOptions options)
      : Stage(place.player, place.parent, "ParallelMap"),
        Activity(place.flow()),
        function_(std::move(function)),
        options_(options),
        auto_(options.parallel == kAuto),
        parallel_(auto_ ? 1 : options.parallel) {
    if (!options_.ordered) Stage::meter()->SetUnordered();
  }
  absl::Status Init(const Plan& input) {
    TROUPE_ASSIGN_OR_RETURN(input_, input.Make({this, meter()}));
    return absl::OkStatus();
  }

  void Start(uint64_t pass) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      DropPieces();
      begun_ = true;
      started_ = false;
      pass_ = pass;
      ended_ = false;
      ++round_;
    }
    Wake();
  }
  bool Close() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      if (tasks_ > 0) return false;
    }
    return idle() && input_->Close() && idle();
  }

 private:
  /// Elements on their way through the function.
  struct Piece final : PoolTask {
    explicit Piece(ParallelMapStage* s) : stage(s) {}
    void Run() noexcept override { stage->MapPiece(this); }

    ParallelMapStage* const stage;
    Block elements;  ///< The inputs, and then the results that are good,
    std::vector<std::pair<size_t, absl::Status>> bad;  ///< before which these failed.
    size_t next = 0, next_bad = 0;                     ///< What is to be given next.
    bool done = false;
    bool dropped = false;  ///< Nobody wants it any more: it belongs to its task.
  };

  static constexpr uint64_t kPieceNs =
      200'000;  ///< What a piece should take: many times a wake-up.
  static constexpr size_t kMostElements = 64;

  // ---- The stage ----

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    absl::StatusOr<Progress> progress = Progress::kSome;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const size_t begin = out->size();
      absl::Status status;
      while (status.ok() && out->size() - begin < limit) {
        Piece* const piece = FirstDone();
        if (piece == nullptr) break;
        status = Give(piece, limit - (out->size() - begin), out);
      }
      if (!status.ok()) {
        progress = status;
      } else if (out->size() == begin) {
        progress = Nothing();
      }
      const size_t ready = NumReady();
      // Pieces that were made before may be larger, or more.
      const size_t most = std::max(ready, MostPieces() * piece_elements_);
      Stage::meter()->SetFullness(static_cast<int64_t>(ready), static_cast<int64_t>(most),
                                  parallel_);
    }
    Wake();
    return progress;
  }

  /// Lock held, and in what follows: the piece that may be given from.
  Piece* FirstDone() {
    for (const std::unique_ptr<Piece>& piece : pieces_) {
      if (piece->done) return piece.get();
      if (options_.ordered) return nullptr;
    }
    return nullptr;
  }
  /// Elements.
  size_t NumReady() const {
    size_t n = 0;
    for (const std::unique_ptr<Piece>& piece : pieces_) {
      if (piece->done) n += piece->elements.size() - piece->next;
    }
    return n;
  }
  size_t MostPieces() const { return 2 * static_cast<size_t>(parallel_); }

  absl::Status Give(Piece* piece, size_t limit, Block* out) {
    while (true) {
      for (; piece->next_bad < piece->bad.size(); ++piece->next_bad) {
        const auto& [before, why] = piece->bad[piece->next_bad];
        if (before > piece->next) break;
        TROUPE_RETURN_IF_ERROR(
            CountBad(Stage::Named(why), options_.skip_bad, &bad_, Stage::meter()));
      }
      if (piece->next == piece->elements.size()) break;
      if (limit-- == 0) return absl::OkStatus();
      out->push_back(std::move(piece->elements[piece->next++]));
    }
    std::erase_if(pieces_, [piece](const std::unique_ptr<Piece>& p) { return p.get() == piece; });
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> Nothing() {
    if (ended_ && pieces_.empty()) {
      if (!status_.ok()) return status_;
      return Progress::kEnd;
    }
    consumer_waits_ = true;
    Stage::meter()->AddStarved();
    full_plays_ = 0;
    if (auto_ && !ended_ && parallel_ < flow()->threads()) ++parallel_;
    return Progress::kPending;
  }

  void DropPieces() {
    for (std::unique_ptr<Piece>& piece : pieces_) {
      if (piece->done) continue;
      piece->dropped = true;
      (void)piece.release();
    }
    pieces_.clear();
  }

  // ---- The activity ----

  void Play() noexcept override {
    while (true) {
      uint64_t round = 0;
      size_t n = 0;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!begun_ || ended_ || closed_ || flow()->stopped()) return;
        if (running_ >= parallel_) return;
        if (pieces_.size() >= MostPieces()) {
          // Results have been waiting all the time: there is one call too many.
          constexpr int kMany = 256;
          if (auto_ && ++full_plays_ >= kMany && parallel_ > 1) {
            --parallel_;
            full_plays_ = 0;
          }
          return;
        }
        round = round_;
        n = piece_elements_;
        if (!started_) {
          started_ = true;
          input_->Start(pass_);
        }
      }
      auto piece = std::make_unique<Piece>(this);
      Tick();
      absl::StatusOr<Progress> progress = input_->Pull(n, &piece->elements);
      if (progress.ok() && *progress == Progress::kPending) return;
      bool wake = false;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (round != round_) continue;
        if (progress.ok() && *progress == Progress::kSome) {
          ++running_;
          ++tasks_;
          flow()->Enter();  // Until the piece is done.
          PoolTask* const task = piece.get();
          pieces_.push_back(std::move(piece));
          flow()->Submit(task);
          continue;
        }
        ended_ = true;
        status_ = progress.status();
        wake = std::exchange(consumer_waits_, false);
      }
      if (wake) player()->Wake();
      return;
    }
  }

  void MapPiece(Piece* piece) noexcept {
    const uint64_t begin = flow()->clock()->NowNs();
    Block inputs;
    std::swap(inputs, piece->elements);
    for (Element& input : inputs) {
      absl::StatusOr<Element> result = absl::CancelledError("the iterator is cancelled");
      if (!flow()->stopped()) result = CallMap(function_, std::move(input));
      if (result.ok()) {
        piece->elements.push_back(*std::move(result));
      } else {
        piece->bad.emplace_back(piece->elements.size(), result.status());
        if (options_.skip_bad == 0) break;
      }
    }
    const uint64_t ns = flow()->clock()->NowNs() - begin;
    Flow* const flow = this->flow();
    bool wake = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      --running_;
      const uint64_t each = std::max<uint64_t>(ns / std::max<size_t>(inputs.size(), 1), 1);
      piece_elements_ = std::clamp<size_t>(kPieceNs / each, 1, kMostElements);
      Stage::meter()->AddNanoseconds(static_cast<int64_t>(ns));
      if (piece->dropped) {
        delete piece;
      } else {
        piece->done = true;
        wake = consumer_waits_ && FirstDone() != nullptr;
        if (wake) consumer_waits_ = false;
      }
    }
    if (wake) player()->Wake();
    Wake();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      --tasks_;  // The last that it does with this.
    }
    flow->Leave();
  }

  absl::Status Save(PositionWriter* to) override {
    std::lock_guard<std::mutex> lock(mutex_);
    to->Number(started_ ? 1 : 0);
    to->Number(pass_);
    to->Number(ended_ ? 1 : 0);
    int64_t bad = bad_;
    for (const std::unique_ptr<Piece>& piece : pieces_) {
      bad += static_cast<int64_t>(piece->bad.size() - piece->next_bad);
      if (bad > options_.skip_bad) return Stage::Named(piece->bad.back().second);
      for (size_t i = piece->next; i < piece->elements.size(); ++i) {
        to->Number(1);
        TROUPE_RETURN_IF_ERROR(to->Put(piece->elements[i]));
      }
    }
    to->Number(0);
    to->Number(static_cast<uint64_t>(bad));
    return started_ ? input_->SavePosition(to) : absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    std::lock_guard<std::mutex> lock(mutex_);
    begun_ = true;
    started_ = from->Flag();
    pass_ = from->Number();
    ended_ = from->Flag();
    auto piece = std::make_unique<Piece>(this);
    while (from->Flag() && from->status().ok()) piece->elements.push_back(from->TakeElement());
    piece->done = true;
    if (!piece->elements.empty()) pieces_.push_back(std::move(piece));
    bad_ = static_cast<int64_t>(from->Number(INT64_MAX));
    if (started_) input_->RestorePosition(from);
  }

  const ElementFunction function_;
  const DatasetMapOptions options_;
  const bool auto_;
  std::unique_ptr<Stage> input_;  ///< Of the activity, once it is started.
  std::mutex mutex_;
  std::deque<std::unique_ptr<Piece>> pieces_;  ///< In the order of their elements.
  int parallel_;                               ///< Calls at once.
  int running_ = 0, tasks_ = 0;
  size_t piece_elements_ = 1;
  int full_plays_ = 0;
  uint64_t pass_ = 0, round_ = 0;
  bool begun_ = false, started_ = false, ended_ = false, closed_ = false, consumer_waits_ = false;
  absl::Status status_;
  int64_t bad_ = 0;
};

}  // namespace

PlanPtr ParallelMapPlan(PlanPtr input, ElementFunction function, DatasetMapOptions options) {
  return PlanOver<ParallelMapStage>(std::move(input), std::move(function), options);
}

}  // namespace troupe::data
