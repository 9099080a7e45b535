// The first pass, kept for the passes after it.
#include <algorithm>
#include <utility>

#include "api/data/stages.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "devices/storage/whole_file.h"

namespace troupe::data {
namespace {

/// What an element takes in memory, those of its strings included.
int64_t BytesOf(const Element& element) {
  int64_t bytes = 0;
  for (const Tensor& tensor : element.components) {
    bytes += static_cast<int64_t>(tensor.bytes());
    if (tensor.type() != ElementType::kString) continue;
    for (const std::string& text : tensor.unchecked_values<std::string>()) {
      bytes += static_cast<int64_t>(text.size());
    }
  }
  return bytes;
}

bool FitsIntoPosition(const Element& element) {
  return std::all_of(element.components.begin(), element.components.end(), [](const Tensor& t) {
    return IsPlain(t.type()) || t.type() == ElementType::kString;
  });
}

/// Elements before the position are dropped when they are read again: they must be the same.
absl::Status CannotReadAgain(const std::string& stage, std::string_view instead) {
  return absl::UnimplementedError(StrCat(
      stage,
      ": its position cannot be saved: what was given would be read again, but a stage before "
      "it is a Map with ordered = false, which gives another order each time",
      instead));
}

/// In memory.
class CacheStage final : public StageOverInput {
 public:
  CacheStage(const Place& place, DatasetCacheOptions options)
      : StageOverInput(place, "Cache"), options_(options) {}
  void Start(uint64_t pass) override {
    next_ = 0;
    if (!begun_) Begin(pass);
  }

 private:
  void Begin(uint64_t pass) {
    begun_ = true;
    pass_ = pass;
    StageOverInput::Start(pass);
  }

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    // After a restart elements that were given are read again first.
    while (next_ >= elements_.size() && !complete_) {
      const size_t before = elements_.size();
      const size_t n = next_ > before ? std::min<size_t>(next_ - before, 256) : limit;
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(n, &elements_));
      if (progress == Progress::kPending) return progress;
      complete_ = progress == Progress::kEnd;
      for (size_t i = before; i < elements_.size(); ++i) {
        TROUPE_RETURN_IF_ERROR(MakeCompact(&elements_[i]));
        bytes_ += BytesOf(elements_[i]);
        fits_ &= FitsIntoPosition(elements_[i]);
      }
    }
    if (next_ >= elements_.size()) return Progress::kEnd;
    const size_t end = std::min(elements_.size(), next_ + limit);
    out->insert(out->end(), elements_.begin() + static_cast<ptrdiff_t>(next_),
                elements_.begin() + static_cast<ptrdiff_t>(end));
    next_ = end;
    return Progress::kSome;
  }
  /// What a position has.
  enum Saved : uint64_t {
    kNothing,   ///< The input is read again.
    kComplete,  ///< All elements.
    kBegun,     ///< Those so far, and where the input is.
  };
  absl::Status Save(PositionWriter* to) override {
    to->Number(pass_);
    to->Number(next_);
    bool holds =
        fits_ && bytes_ <= options_.position_bytes && (complete_ || next_ <= elements_.size());
    if (!holds && meter()->unordered()) {
      return CannotReadAgain(
          name(), "; a larger position_bytes saves elements that are not resources or variants");
    }
    // What the stages before hold counts as well, such as the window of a Shuffle.
    const bool bounded = !meter()->unordered();
    PositionWriter input(bounded ? options_.position_bytes - bytes_ : INT64_MAX);
    if (holds && !complete_) {
      absl::Status saved = StageOverInput::Save(&input);
      holds = saved.ok() && !input.full();
      if (!holds && !bounded) return saved;
    }
    to->Number(!holds ? kNothing : complete_ ? kComplete : kBegun);
    if (!holds) return absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(to->Put(elements_));
    to->Append(std::move(input));
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    const uint64_t pass = from->Number();
    next_ = from->Number();
    const uint64_t saved = from->Number(kBegun);
    if (saved == kNothing) return Begin(pass);
    begun_ = true;
    complete_ = saved == kComplete;
    pass_ = pass;
    elements_ = from->TakeBlock();
    if (next_ > elements_.size()) from->Refuse();
    for (const Element& element : elements_) bytes_ += BytesOf(element);
    if (!complete_) StageOverInput::Restore(from);
  }

  const DatasetCacheOptions options_;
  Block elements_;
  int64_t bytes_ = 0;  ///< Of `elements_`.
  bool fits_ = true;   ///< All of them can be in a position.
  size_t next_ = 0;
  uint64_t pass_ = 0;  ///< That was kept.
  bool begun_ = false, complete_ = false;
};

/// In a file of records, each an element as positions hold them.
class CacheFileStage final : public StageOverInput {
 public:
  CacheFileStage(const Place& place, std::string path)
      : StageOverInput(place, "CacheFile"), path_(std::move(path)) {}
  ~CacheFileStage() override { GiveUpWriting(); }
  void Start(uint64_t pass) override {
    GiveUpWriting();
    reader_ = nullptr;
    pass_ = pass;
    next_ = again_ = offset_ = 0;
    opened_ = ended_ = false;
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    if (ended_) return Progress::kEnd;
    if (!opened_) {
      if (const absl::Status opened = Open(); !opened.ok()) return Named(opened);
    }
    const size_t begin = out->size();
    while (out->size() == begin) {
      TROUPE_RETURN_IF_ERROR(CheckWanted());
      absl::StatusOr<Progress> progress = reader_ != nullptr ? Read(limit, out) : Write(limit, out);
      // Before an error as well.
      const size_t skipped = std::min<uint64_t>(again_, out->size() - begin);
      const auto first = out->begin() + static_cast<ptrdiff_t>(begin);
      out->erase(first, first + static_cast<ptrdiff_t>(skipped));
      again_ -= skipped;
      if (!progress.ok() || *progress != Progress::kSome) return progress;
    }
    next_ += out->size() - begin;
    return Progress::kSome;
  }

  absl::Status Open() {
    TROUPE_ASSIGN_OR_RETURN(file_system_, FileSystems().Find(path_));
    absl::Status exists = file_system_->Exists(path_);
    if (exists.ok()) {
      TROUPE_ASSIGN_OR_RETURN(reader_,
                              RecordReader::Open(file_system_, path_, {.offset = offset_}));
      if (offset_ > 0) again_ = 0;
    } else if (absl::IsNotFound(exists)) {
      if (again_ > 0 && meter()->unordered()) {
        return absl::FailedPreconditionError(
            StrCat(path_,
                   ": the file of the position has gone, and a Map with ordered = false "
                   "does not give the same elements again"));
      }
      temporary_ = TemporaryName(path_, StrCat(Mix(reinterpret_cast<uintptr_t>(this),
                                                   player()->flow()->clock()->NowNs())));
      TROUPE_ASSIGN_OR_RETURN(writer_, RecordWriter::Create(file_system_, temporary_));
      StageOverInput::Start(pass_);
    } else {
      return exists;
    }
    opened_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> Read(size_t limit, Block* out) {
    const size_t begin = out->size();
    while (out->size() - begin < limit) {
      const uint64_t offset = reader_->offset();
      const absl::StatusOr<bool> more = reader_->Next(&record_);
      if (!more.ok()) return Named(more.status());
      if (!*more) break;
      PositionReader from(record_);
      Element element = from.TakeElement();
      if (!from.status().ok() || !from.at_end()) {
        return absl::DataLossError(StrCat(name(), ": ", path_, ", record at byte ", offset,
                                          ": it is no element of a dataset"));
      }
      out->push_back(std::move(element));
    }
    ended_ = out->size() == begin;
    return ended_ ? Progress::kEnd : Progress::kSome;
  }

  absl::StatusOr<Progress> Write(size_t limit, Block* out) {
    const size_t begin = out->size();
    TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(limit, out));
    ended_ = progress == Progress::kEnd;
    absl::Status written = ended_ ? Complete() : absl::OkStatus();
    for (size_t i = begin; written.ok() && i < out->size(); ++i) {
      PositionWriter element;
      written = element.Put((*out)[i]);
      if (written.ok()) written = writer_->Write(element.Take());
    }
    if (!written.ok()) return Named(written);
    return progress;
  }

  absl::Status Complete() {
    TROUPE_RETURN_IF_ERROR(writer_->Sync());
    TROUPE_RETURN_IF_ERROR(writer_->Close());
    TROUPE_RETURN_IF_ERROR(file_system_->Rename(temporary_, path_));
    // A position that is saved from now on has an offset into it.
    TROUPE_RETURN_IF_ERROR(file_system_->SyncDirectory(PathDirectory(path_)));
    writer_ = nullptr;
    return absl::OkStatus();
  }
  void GiveUpWriting() {
    if (writer_ == nullptr) return;
    writer_ = nullptr;
    file_system_->Remove(temporary_).IgnoreError();
  }

  absl::Status Save(PositionWriter* to) override {
    if (writer_ != nullptr && meter()->unordered()) return CannotReadAgain(name(), "");
    to->Number(pass_);
    to->Number(next_);
    to->Number(ended_ ? 1 : 0);
    // Of a position that was restored and has not been needed yet, as it was.
    to->Number(!opened_ ? offset_ : reader_ != nullptr ? reader_->offset() : 0);
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    Start(from->Number());
    next_ = again_ = from->Number();
    ended_ = from->Flag();
    offset_ = from->Number();
  }

  const std::string path_;
  FileSystem* file_system_ = nullptr;
  std::unique_ptr<RecordReader> reader_;  ///< Of the complete file, if there is one,
  std::unique_ptr<RecordWriter> writer_;  ///< or of what is to become it.
  std::string temporary_, record_;
  uint64_t pass_ = 0, next_ = 0;
  uint64_t again_ = 0;   ///< Elements that were given before the position was saved,
  uint64_t offset_ = 0;  ///< and where the next one is in the complete file; 0: not known.
  bool opened_ = false, ended_ = false;
};

}  // namespace

PlanPtr CachePlan(PlanPtr input, DatasetCacheOptions options) {
  return PlanOver<CacheStage>(std::move(input), options);
}
PlanPtr CacheFilePlan(PlanPtr input, std::string path) {
  return PlanOver<CacheFileStage>(std::move(input), std::move(path));
}

}  // namespace troupe::data
