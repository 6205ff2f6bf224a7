// The ways a job starts; filled by the files beside it.
namespace trainctl {}
